"""Intervals in files: two columns for each label, or two files, decided as in memory."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.support import cases

import abstain
from abstain._cli import main
from abstain.streams import Job, calibrate_files, decide_files, open_intervals

LABELS = ["sky", "sea", "sand"]


@pytest.fixture
def folder(tmp_path):
    """Intervals of 60 rows in one file, and in two."""
    low, high = cases.random_intervals(60, 3)
    index = pd.Index([f"r{i}" for i in range(60)], name="id")
    lower, upper = (pd.DataFrame(end, index, LABELS) for end in (low, high))
    both = pd.concat([upper.add_suffix("_upper"), lower.add_suffix("_lower")], axis=1)
    for name, frame in {"lower": lower, "upper": upper, "box": both}.items():
        frame.reset_index().to_parquet(tmp_path / f"{name}.parquet")
        frame.reset_index().to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def known(folder, loss, penalty, **options):
    lower, upper = (pd.read_parquet(folder / f"{end}.parquet").set_index("id") for end in ("lower", "upper"))
    return abstain.decide(abstain.Intervals(lower, upper, **options), loss, penalty)


@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
@pytest.mark.parametrize("inputs", [["box.parquet", "--intervals"], ["lower.csv", "--upper", "upper.parquet"]])
def test_files_are_decided_as_in_memory(folder, loss, inputs):
    inputs = [folder / part if "." in part else part for part in inputs]
    target, queue = folder / "q.csv", folder / "queue.csv"
    result = run("decide", *inputs, "--loss", loss, "--penalty", 0.1, "-o", target, "--queue", queue, "--json")
    assert result.exit_code == 0, result.output
    expected = known(folder, loss, 0.1)
    found = pd.read_csv(target, index_col="id")
    assert list(found.columns) == LABELS
    np.testing.assert_array_equal(found.fillna(-1).to_numpy(), expected.codes)
    said = json.loads(result.stdout)
    assert said["rule"] == "minimax"
    assert said["expected_loss"] == pytest.approx(expected.expected_loss.mean())
    reviews = pd.read_csv(queue)
    assert list(reviews.columns) == ["id", "label", "probability", "saves", "lower", "upper"]
    assert len(reviews) == expected.n_abstained.sum()
    np.testing.assert_allclose(reviews["probability"], (reviews["lower"] + reviews["upper"]) / 2)


def test_rules(folder):
    result = run(
        "decide", folder / "box.csv", "--intervals", "--rule", "skeptical", "--penalty", "none", "-o", folder / "q.csv"
    )
    assert "worst-case expected loss" in result.output
    assert "no price" in result.output
    found = pd.read_csv(folder / "q.csv", index_col="id").fillna(-1).to_numpy()
    np.testing.assert_array_equal(found, known(folder, "hamming", "none", rule="skeptical").codes)
    options = "--rule", "hurwicz", "--optimism", 0.3
    assert run("decide", folder / "box.csv", "--intervals", *options, "-o", folder / "q.csv").exit_code == 0
    found = pd.read_csv(folder / "q.csv", index_col="id").fillna(-1).to_numpy()
    np.testing.assert_array_equal(found, known(folder, "hamming", 0.1, rule="hurwicz", optimism=0.3).codes)


def test_labels_folders_and_a_job_that_opens_the_files_itself(folder):
    (folder / "parts").mkdir()
    whole = pd.read_parquet(folder / "box.parquet")
    for k in range(2):
        whole.iloc[30 * k : 30 * k + 30].to_parquet(folder / "parts" / f"{k}.parquet")
    job = Job("f1", 0.1, rule="minimax", labels=["sand", "sky"])
    summary = decide_files(folder / "parts", f"{folder}/out/", job)
    assert (summary.n_rows, summary.n_labels, summary.n_files) == (60, 2, 2)
    assert decide_files(folder / "parts", f"{folder}/out/", job, resume=True).n_kept == 2
    again = Job("f1", 0.1, rule="hurwicz", optimism=0.0, labels=["sand", "sky"])
    assert job.fingerprint(job.open(folder / "box.parquet")) != again.fingerprint(again.open(folder / "box.parquet"))
    lower, upper = (pd.read_parquet(folder / f"{end}.parquet")[["sand", "sky"]] for end in ("lower", "upper"))
    expected = abstain.decide(abstain.Intervals(lower, upper), "f1", 0.1)
    found = pd.concat([pd.read_parquet(folder / "out" / f"{k}.parquet") for k in range(2)])[["sand", "sky"]]
    np.testing.assert_array_equal(found.fillna(-1).to_numpy(), expected.codes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.rename(columns={"sea_upper": "sea_up"}), "column 'sea_up' ends in neither _lower nor _upper"),
        (lambda f: f.drop(columns="sea_upper"), "there is no column 'sea_upper'"),
        (lambda f: f.assign(sky_upper=f["sky_upper"].where(f["id"] != "r4", 1.5)), "line 6 (id 'r4')"),
        (lambda f: f.assign(sea_lower=f["sea_lower"].where(f["id"] != "r4", 1.0), sea_upper=0.5), "line 6 (id 'r4')"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(folder, change, message):
    change(pd.read_csv(folder / "box.csv")).to_csv(folder / "bad.csv", index=False)
    if "sea_lower" in message or "r4" in message:
        frame = pd.read_csv(folder / "bad.csv")
        frame.loc[frame["id"] != "r4", ["sea_lower", "sea_upper"]] = 0.2, 0.5
        frame.to_csv(folder / "bad.csv", index=False)
    result = run("decide", folder / "bad.csv", "--intervals", "-o", folder / "never.csv")
    assert result.exit_code != 0
    assert message in result.output
    assert not (folder / "never.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["box.csv", "--rule", "minimax"], "are for intervals"),
        (["box.csv", "--intervals", "--upper", "upper.csv"], "give one"),
        (["box.csv", "--intervals", "--on-error", "skip"], "intervals must all be right"),
        (["lower.csv", "--upper", "upper.csv", "-o", "out/"], "not a folder"),
        (["lower.csv", "--upper", "upper.csv", "-o", "lower.csv"], "is an input"),
        (["lower.csv", "--upper", "upper.csv", "--kind", "logit"], "--kind logit is for one file with both ends"),
        (["box.csv", "--intervals", "--rule", "hurwicz"], "--rule hurwicz needs --optimism SHARE"),
        (["box.csv", "--intervals", "--optimism", "0.3"], "--optimism is for --rule hurwicz"),
        (["box.csv", "--intervals", "--rule", "hurwicz", "--optimism", "3"], "3 is not a share"),
        (
            ["box.csv", "--intervals", "--labels", "sea_lower"],
            "no column 'sea_lower_lower'; labels are named without _lower and _upper",
        ),
        (["box.csv", "--intervals", "--labels", "sea,zz"], "no column 'zz_lower'; labels are named without"),
        (["box.csv", "--intervals", "--rule", "skeptical", "--loss", "f1"], "judges each label by itself"),
        (["upper.csv", "--upper", "lower.csv"], "exchanged?"),
        (["-", "--upper", "-"], "standard input is one table"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, arguments, message):
    arguments = [folder / part if part.endswith(".csv") else part for part in arguments]
    output = [] if "-o" in arguments else ["-o", folder / "never.csv"]
    result = run("decide", *arguments, *output)
    assert result.exit_code != 0
    assert message in result.output
    assert not (folder / "never.csv").exists()


@pytest.mark.parametrize("larger", ["lower", "upper"])
def test_labels_of_one_file_only_are_named(folder, larger):
    """They must not be left out: the others would be decided, and nobody would miss them."""
    frame = pd.read_csv(folder / f"{larger}.csv")
    frame.assign(wood=frame["sky"], hill=frame["sky"]).to_csv(folder / f"{larger}.csv", index=False)
    result = run("decide", folder / "lower.csv", "--upper", folder / "upper.csv", "-o", folder / "never.csv")
    smaller = "upper" if larger == "lower" else "lower"
    assert f"{folder / larger}.csv has 'wood', 'hill', which {folder / smaller}.csv does not have" in result.output
    assert result.exit_code == 1
    assert not (folder / "never.csv").exists()
    arguments = "--upper", folder / "upper.csv", "--labels", "sand,sky", "-o", folder / "q.csv"
    assert run("decide", folder / "lower.csv", *arguments).exit_code == 0
    np.save(folder / "two.npy", np.ones((60, 2)))
    np.save(folder / "three.npy", np.ones((60, 3)))
    result = run("decide", folder / "two.npy", "--upper", folder / "three.npy", "-o", folder / "never.npy")
    assert "three.npy has 3 labels" in result.output
    assert "two.npy has 2" in result.output


def test_labels_are_in_the_order_of_the_lower_ends(folder):
    pd.read_csv(folder / "upper.csv")[["id", "sand", "sky", "sea"]].to_csv(folder / "upper.csv", index=False)
    assert run("decide", folder / "lower.csv", "--upper", folder / "upper.csv", "-o", folder / "q.csv").exit_code == 0
    found = pd.read_csv(folder / "q.csv", index_col="id")
    assert list(found.columns) == LABELS
    np.testing.assert_array_equal(found.fillna(-1).to_numpy(), known(folder, "hamming", 0.1).codes)
    # The upper ends may come from standard input.
    arguments = [str(folder / "lower.csv"), "--upper", "-", "-o", str(folder / "again.csv")]
    with (folder / "upper.csv").open("rb") as stream:
        result = CliRunner().invoke(main, ["decide", *arguments], input=stream)
    assert result.exit_code == 1  # what is read once cannot be read in another order
    assert "in the same order" in result.output
    upper = pd.read_csv(folder / "upper.csv")[["id", *LABELS]].to_csv(index=False)
    assert CliRunner().invoke(main, ["decide", *arguments], input=upper.encode()).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(folder / "again.csv", index_col="id"), found)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_ends_of_any_precision(folder, dtype):
    low, high = cases.random_intervals(60, 3)
    np.save(folder / "low.npy", np.asarray(low, dtype))
    np.save(folder / "high.npy", np.asarray(high, dtype))
    result = run("decide", folder / "low.npy", "--upper", folder / "high.npy", "-o", folder / "q.npy")
    assert result.exit_code == 0, result.output


def test_two_files_that_do_not_fit_are_named(folder):
    low = pd.read_csv(folder / "lower.csv").melt("id", var_name="label", value_name="probability")
    low.sort_values("id", kind="stable").to_csv(folder / "long.csv", index=False)
    result = run("decide", folder / "long.csv", "--upper", folder / "upper.csv", "-o", folder / "never.csv")
    assert f"{folder / 'long.csv'} is long or sparse, {folder / 'upper.csv'} is wide" in result.output
    (folder / "long.csv").write_text("id,label,probability\na,sky,0.5\na,sea,0.3\n")
    (folder / "up.csv").write_text("id,label,probability\na,sky,0.7\nb,sea,0.7\n")
    result = run("decide", folder / "long.csv", "--upper", folder / "up.csv", "-o", folder / "never.csv")
    assert "label 'sea' has lower 0.3, and upper is not listed, so its upper end is 0" in result.output
    with pytest.raises(abstain.InvalidOutput, match="give a file as output, not a folder"):
        decide_files(open_intervals(folder / "lower.csv", folder / "upper.csv"), f"{folder}/out/", Job("f1", 0.1))


def test_ends_that_are_decided_as_labels_are_told(folder):
    result = run("decide", folder / "box.csv", "-o", folder / "q.csv")
    assert result.exit_code == 0
    assert "sky_lower and sky_upper are decided as two labels" in result.output
    assert "decided as two labels" not in run("decide", folder / "lower.csv", "-o", folder / "q.csv").output


def test_calibration_writes_intervals_that_decide_reads(tmp_path):
    random = np.random.default_rng(0)
    p = random.random((300, 3))
    calibration = abstain.calibration.fit(p, random.random(p.shape) < p, method="venn-abers")
    abstain.write_table(abstain.Table(p[:50], LABELS), tmp_path / "p.parquet")
    calibration.save(tmp_path / "c.json")
    result = run(
        "calibrate", tmp_path / "p.parquet", "--with", tmp_path / "c.json", "--intervals", "-o", tmp_path / "b.parquet"
    )
    assert result.exit_code == 0, result.output
    assert "50 rows × 3 labels" in result.output
    box = calibration.intervals(p[:50])
    batch = next(open_intervals(tmp_path / "b.parquet").batches())
    np.testing.assert_array_equal(batch.probabilities.lower, box.lower)
    np.testing.assert_array_equal(batch.probabilities.upper, box.upper)
    assert run("decide", tmp_path / "b.parquet", "--intervals", "-o", tmp_path / "q.csv").exit_code == 0
    found = pd.read_csv(tmp_path / "q.csv").fillna(-1).to_numpy()
    np.testing.assert_array_equal(found, abstain.decide(box).codes)
    with pytest.raises(abstain.InvalidOutput, match="npy has no names"):
        calibrate_files(tmp_path / "p.parquet", tmp_path / "never.npy", calibration, intervals=True)
    plain = abstain.calibration.fit(p, random.random(p.shape) < p, method="sigmoid")
    with pytest.raises(abstain.InvalidParameter, match="gives no intervals"):
        calibrate_files(tmp_path / "p.parquet", tmp_path / "never.csv", plain, intervals=True)
    assert not (tmp_path / "never.csv").exists()
