"""What the commands say to somebody who makes a mistake: what is wrong, where, and what to do."""

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import abstain
from abstain._cli import main
from abstain._utils.errors import LONGEST_QUOTE, quoted
from abstain.streams import open_sources
from abstain.streams._tables import Table, read_table, write_table

P = np.random.default_rng(0).random((20, 3)).round(3)
IDS = [f"r{i}" for i in range(len(P))]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write_table(Table(P, list("abc"), IDS), tmp_path / "p.csv")
    write_table(Table(P > 0.5, list("abc"), IDS), tmp_path / "truth.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code=1):
    return " ".join(run(*arguments, code=code).stderr.split()).rpartition("Error: ")[2]


# Numbers that are no probabilities

PER_CENT = "are these per cent? divide them by 100"
LOGITS = (
    "are these logits (log-odds)? "
    'apply the sigmoid 1/(1+exp(−x)): abstain.label_probabilities(x, kind="logit"), or --kind logit'
)
WITHOUT = "(--on-error skip or abstain goes on without it)"


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "long.csv"])
@pytest.mark.parametrize("command", [["decide", "-o", "q.csv"], ["budget", "--rate", "0.1"]], ids=["decide", "budget"])
def test_per_cent_and_logits(command, kind):
    for values, hint in ((100 * P, PER_CENT), (np.log(P / (1 - P)), LOGITS)):
        if kind == "npy":
            np.save("x.npy", values)
        elif kind == "long.csv":
            frame = pd.DataFrame(values, IDS, list("abc")).rename_axis("id").melt(
                var_name="label", value_name="probability", ignore_index=False
            )  # fmt: skip
            frame.sort_values("id").to_csv("x.long.csv")
        else:
            write_table(Table(values, list("abc"), IDS), f"x.{kind}")
        assert refused(*command, f"x.{kind}").endswith(f"; a probability is a number from 0 to 1; {hint}")


def test_per_cent_of_rare_labels():
    rare = np.full((20, 100), 0.1)  # per cent, but for one label of each row
    rare[:, 7] = 55
    np.save("rare.npy", rare)
    assert refused("decide", "rare.npy", "-o", "q.csv").endswith(PER_CENT)


def test_logits_of_which_most_look_like_probabilities():
    values = np.random.default_rng(0).normal(0.5, 0.25, (300, 3))
    np.save("x.npy", values)
    for command in (["decide", "x.npy", "-o", "q.csv"], ["budget", "x.npy", "--rate", "0.1"], ["report", "x.npy"]):
        assert refused(*command).endswith(LOGITS)
    with pytest.raises(abstain.NoProbabilities, match="apply the sigmoid"):
        abstain.decide(da.from_array(values, chunks=(100, 3))).compute()


def test_rows_that_add_up_to_one():
    np.save("x.npy", np.random.default_rng(0).dirichlet(np.ones(3), 50))
    Path("both").mkdir()
    for k in range(2):
        np.save(f"both/{k}.npy", np.load("x.npy"))
    for command in (
        ["decide", "x.npy", "-o", "q.csv"],
        ["decide", "both", "-o", "q.csv"],
        ["budget", "x.npy", "--rate", "0.1", "-o", "q.csv"],
        ["report", "x.npy"],
    ):
        assert run(*command).stderr.count("Warning: probabilities: every row adds up to 1, as a softmax") == 1
    assert run("decide", "x.npy", "-o", "q.csv", "--quiet").stderr == ""


def test_a_slip_is_neither_per_cent_nor_a_logit():
    for value in (97, -0.5):
        slip = P.copy()
        slip[3, 1] = value
        np.save("slip.npy", slip)
        assert refused("decide", "slip.npy", "-o", "q.csv").endswith(f"from 0 to 1 {WITHOUT}")


@pytest.mark.parametrize("value", [-1, 1.01, 101])
def test_numbers_that_are_nothing_known(value):
    np.save("x.npy", np.full((4, 2), float(value)))
    assert refused("decide", "x.npy", "-o", "q.csv").endswith(f"from 0 to 1 {WITHOUT}")


def test_the_library_hints_too():
    from scipy import sparse

    for values, hint in ((100 * P, PER_CENT), (np.log(P / (1 - P)), LOGITS)):
        for table in (values, values.astype(np.float32), sparse.csr_array(values), pd.DataFrame(values)):
            with pytest.raises(abstain.InvalidProbabilities) as reason:
                abstain.decide(table)
            assert str(reason.value).endswith(hint)
    with pytest.raises(abstain.InvalidProbabilities, match=r"from 0 to 1$"):
        abstain.decide([[0.2, 0.3], [0.2, 1.7]])


# Columns that hold no labels


@pytest.mark.parametrize("ids", [range(1, 21), range(0, 200, 10)])
def test_a_column_that_numbers_the_rows(ids):
    pd.DataFrame(P, columns=list("abc")).assign(nr=ids)[["nr", *"abc"]].to_csv("nr.csv", index=False)
    said = refused("decide", "nr.csv", "-o", "q.csv")
    assert said.startswith("nr.csv: line 3, column 0 (label 'nr') is ")
    assert said.endswith("; if this column numbers the rows, make it the ids (--id-column nr)")
    run("decide", "nr.csv", "-o", "q.csv", "--id-column", "nr")


def test_a_column_of_text():
    frame = pd.DataFrame(P, columns=list("abc")).assign(id=IDS, town="Rome, Bern and Ulm")[["id", "town", *"abc"]]
    frame.to_csv("town.csv", index=False)
    said = refused("decide", "town.csv", "-o", "q.csv")
    assert said.startswith("town.csv: line 2 (id 'r0'), column 0 (label 'town') is 'Rome, Bern and Ulm'; a probability")
    assert said.endswith("choose those that do (--labels), or make it the ids (--id-column)")
    run("decide", "town.csv", "-o", "q.csv", "--labels", "a,b,c")
    frame.to_parquet("town.parquet")
    assert refused("decide", "town.parquet", "-o", "q.csv").endswith("; choose the columns of numbers (--labels)")


def test_an_empty_column():
    Path("trail.csv").write_text("id,a,b,\nr0,0.5,0.3,\nr1,0.5,0.2,\n")
    said = refused("decide", "trail.csv", "-o", "q.csv")
    assert said.startswith("trail.csv: line 2 (id 'r0'), column 2 (label '') is empty; a probability")
    assert "choose those that do (--labels)" in said


def test_a_long_table_that_is_not_recognised():
    Path("long.csv").write_text("ticket,queue,score\nr0,a,0.5\nr0,b,0.3\nr1,a,0.2\n")
    said = refused("decide", "long.csv", "-o", "q.csv")
    options = "--label-column queue --value-column score"
    assert said.endswith(f"; if it names the labels, the table is long ({options})")
    run("decide", "long.csv", "-o", "q.csv", *options.split())
    said = refused("decide", "long.csv", "-o", "q.csv", "--form", "long", "--label-column", "queue")
    assert said == (
        "long.csv: there is no column 'probability'; name it (--value-column): there are 'ticket', 'queue', 'score'"
    )


def test_cells_with_a_sign_for_per_cent():
    Path("x.csv").write_text("id,a,b\nr0,97%,3%\nr1,5%,50%\n")
    assert refused("decide", "x.csv", "-o", "q.csv").endswith("; per cent are written as shares: 97% is 0.97")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "a,b,a"], "p.csv: label 'a' is asked for twice"),
        (["--id-column", "ID"], "p.csv: there is no column 'ID'; did you mean 'id'?"),
    ],
)
def test_columns_that_are_asked_for(arguments, message):
    assert refused("decide", "p.csv", "-o", "q.csv", *arguments) == message


def test_decimal_commas():
    Path("x.csv").write_text("id,a,b\nr0,0,5,0,3\n")
    hint = "line 2 has 5 cells, expected 3; text with a comma needs quotes, numbers have a point"
    assert refused("decide", "x.csv", "-o", "q.csv") == f"x.csv: {hint}"


def test_a_price_that_is_no_number():
    Path("prices.csv").write_text("label,cost\na,1\nb,cheap\nc,1\n")
    said = refused("decide", "p.csv", "-o", "q.csv", "--penalty", "prices.csv")
    assert said == "prices.csv: line 3, column 2: 'cheap' is not a number (the column has type string)"


def test_a_name_with_a_comma():
    write_table(Table(P, ["sea, open", "sea", "sky"], IDS), "comma.csv")
    hint = "(names with commas are listed in a file, one on each line: --labels @FILE)"
    assert refused("decide", "comma.csv", "-o", "q.csv", "--labels", "sea, open").endswith(hint)
    assert hint not in refused("decide", "comma.csv", "-o", "q.csv", "--labels", "sky,moon")
    Path("names.txt").write_text("sea, open\nsky\n")
    run("decide", "comma.csv", "-o", "q.csv", "--labels", "@names.txt")
    assert read_table("q.csv").label_names == ("sea, open", "sky")


# Options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decide", "p.csv", "--penalty", "prices.csv"], "there is no file 'prices.csv'"),
        (["decide", "p.csv", "--penalty", "./prices"], "there is no file './prices'"),
        (["evaluate", "p.csv", "truth.csv", "--penalty", "prices.parquet"], "there is no file 'prices.parquet'"),
        (["budget", "p.csv", "--review", "costs.csv"], "there is no file 'costs.csv'"),
        (["budget", "p.csv", "--per-label", "experts.csv"], "there is no file 'experts.csv'"),
        (["budget", "p.csv", "--review", "dear"], "'dear' is neither a number ≥ 0 nor a file with one for each label"),
        (["budget", "p.csv", "--rate", "5"], "5 is not a share, a number from 0 to 1; 5 % is 0.05"),
        (["budget", "p.csv", "--rate", "5%"], "5% is not a share, a number from 0 to 1; 5 % is 0.05"),
        (["budget", "p.csv", "--rate", "101"], "101 is not a share, a number from 0 to 1"),
        (["budget", "p.csv", "--rate", "nan"], "nan is not a share"),
        (["budget", "p.csv", "--rate", "0,05"], "'0,05' is not a number; did you mean 0.05?"),
        (["budget", "p.csv", "--rate", "0_1"], "'0_1' is not a number"),
        (["decide", "p.csv", "--penalty", "0_1"], "'0_1' is not a penalty"),
        (["decide", "p.csv", "--penalty", "concave:٣"], "'concave:٣' is not a penalty"),
        (["decide", "p.csv", "--loss", "fbeta:0_2"], "'fbeta:0_2' ('0_2' is not a number)"),
        (["decide", "p.csv", "--loss", "hamming:false_negative=0_2"], "'0_2' is not a number"),
        (["budget", "p.csv", "--review", "0_1"], "'0_1' is neither a number"),
    ],
)
def test_options(arguments, message):
    assert message in refused(*arguments, code=2)


def test_the_summary_says_what_was_paid_for():
    Path("prices.csv").write_text("label,cost\na,0.1\nb,0.2\nc,0.3\n")
    said = run("decide", "p.csv", "-o", "q.csv", "--penalty", "prices.csv").output
    assert "(Hamming, labels left open cost what prices.csv says): q.csv" in said
    found = json.loads(run("decide", "p.csv", "-o", "q.csv", "--penalty", "prices.csv", "--json").output)
    assert (found["loss"], found["penalty"]) == ("Hamming()", "prices.csv")
    found = json.loads(run("evaluate", "q.csv", "truth.csv", "--json").output)
    assert (found["loss"], found["penalty"]) == ("Hamming()", "Linear(0.1)")


# Long tables with names of their own


@pytest.fixture
def tickets():
    frame = pd.DataFrame(P, IDS, list("abc")).rename_axis("ticket").reset_index()
    long = frame.melt("ticket", var_name="queue", value_name="score").sort_values("ticket", kind="stable")
    long.assign(note="ok").to_csv("tickets.csv", index=False)
    return ["--id-column", "ticket", "--label-column", "queue", "--value-column", "score"]


def test_long_tables_call_their_columns_as_they_like(tickets):
    run("decide", "tickets.csv", *tickets, "-o", "q.csv")
    run("decide", "p.csv", "-o", "wide.csv")
    found = pd.read_csv("q.csv").pivot(index="ticket", columns="label", values="answer")
    wide = pd.read_csv("wide.csv", index_col="id").astype(float)
    listed = found.notna() | (wide.loc[found.index, found.columns] != 0)  # what is not listed is answered 0
    pd.testing.assert_frame_equal(
        found[listed].fillna(0.5).set_axis(wide.columns, axis=1).rename_axis("id"),
        wide.loc[found.index][listed].fillna(0.5),
    )
    prices = [
        json.loads(run("budget", file, *options, "--rate", "0.1", "--json").output)["price"]
        for file, options in (("p.csv", []), ("tickets.csv", tickets))
    ]
    assert prices[0] == pytest.approx(prices[1], rel=1e-12)
    sources = open_sources("tickets.csv", id_column="ticket", label_column="queue", value_column="score")
    assert (sources.is_long, sources.label_names) == (True, ("a", "b", "c"))


def test_long_answers_of_more_columns_are_scored_beside_a_wide_truth(tickets):
    review = pd.read_csv("tickets.csv").assign(said=lambda t: (t.score > 0.5).astype(int))
    review.to_csv("review.csv", index=False)
    options = ["--label-column", "queue", "--value-column", "said", "--id-column", "ticket"]
    pd.read_csv("truth.csv").rename(columns={"id": "ticket"}).set_index("ticket").loc[
        review.ticket.unique()
    ].reset_index().to_csv("truth.csv", index=False)
    found = json.loads(run("evaluate", "review.csv", "truth.csv", *options, "--json").output)
    assert (found["rows"], found["wrong"], found["abstained"]) == (20, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decide", "p.csv", "--value-column", "score", "-o", "q.csv"], "p.csv: there is no column 'label'"),
        (["decide", "tickets.csv", "--form", "long", "-o", "q.csv"], "tickets.csv: there is no column 'label'"),
        (["decide", "tickets.csv", "--form", "wide", "--value-column", "score", "-o", "q.csv"], "wide tables have no"),
        (["evaluate", "p.csv", "truth.csv", "--value-column", "said"], "there is no column 'said'"),
        (["evaluate", "p.csv", "truth.csv", "--form", "long"], "p.csv: there is no column 'label'"),
    ],
)
def test_long_tables_without_these_columns(arguments, message, tickets):
    assert message in refused(*arguments)


# Tables without rows


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_nothing_is_scored_or_priced(kind):
    frame = pd.DataFrame({"id": pd.Series([], dtype=str), "a": pd.Series([], dtype=float)})
    getattr(frame, f"to_{kind}")(f"none.{kind}", index=False)
    none = f"none.{kind}"
    assert refused("evaluate", none, none) == f"{none}: there are no rows, and so nothing to score"
    for limit in (["--rate", "0.1"], ["--count", "3"], ["--per-label", "2"]):
        assert refused("budget", none, *limit) == f"{none}: there are no rows, and so no price of a review"
    result = run("budget", none, "--rate", "0.1", "-o", "q.csv")
    assert "price" not in result.output
    assert len(read_table("q.csv")) == 0
    assert json.loads(run("budget", none, "--rate", "0.1", "-o", "q.csv", "--json").output)["price"] is None


# Errors for programs


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["decide", "nothing.csv"], 2),
        (["decide", "p.csv", "-o", "q.xlsx"], 1),
        (["decide", "p.csv", "-o", "q.csv", "--penalty", "cheap"], 2),
        (["budget", "p.csv"], 2),
        (["evaluate", "p.csv", "truth.csv"], 1),
        (["experiment", "verdict", "."], 1),
    ],
)
def test_errors_are_json_where_results_would_be(arguments, code):
    result = run(*arguments, "--json", code=code)
    found = json.loads(result.stdout)
    assert list(found) == ["error"]
    assert f"Error: {found['error']}" in result.stderr
    assert run(*arguments, code=code).stdout == ""


def test_errors_are_no_part_of_the_data_on_standard_output():
    result = run("decide", "truth.csv", "p.csv", "-o", "-", "--json", code=1)
    assert "error" not in result.stdout
    told, said = result.stderr.splitlines()
    assert said == f"Error: {json.loads(told)['error']}"


# Long names


def test_long_names_are_shortened():
    name = "x" * 5000
    assert len(quoted(name)) == LONGEST_QUOTE
    write_table(Table(P, [name, "b", "c"], IDS), "wide.csv")
    write_table(Table(P > 0.5, ["a" * 5000, "b", "c"], IDS), "other.csv")
    write_table(Table(2 * P - 0.3, [name, "b", "c"], [f"{i}" * 5000 for i in IDS]), "bad.csv")
    Path("text.csv").write_text(f"id,a\nr0,{name}\nr1,0.5\nr2,0.5\n")
    for arguments in (
        ["decide", "wide.csv", "-o", "q.csv", "--labels", "y"],
        ["decide", "wide.csv", "-o", "q.csv", "--labels", "y" * 5000],
        ["decide", "wide.csv", "other.csv", "-o", "q.csv"],
        ["decide", "bad.csv", "-o", "q.csv"],
        ["decide", "text.csv", "-o", "q.csv"],
        ["evaluate", "wide.csv", "wide.csv"],
        ["evaluate", "wide.csv", "other.csv"],
        ["evaluate", "text.csv", "text.csv"],
    ):
        assert len(refused(*arguments)) < 600
    assert len(refused("decide", "p.csv", "--penalty", name, code=2)) < 400
    with pytest.raises(abstain.InvalidProbabilities) as reason:
        abstain.decide(read_table("bad.csv"))
    assert len(str(reason.value)) < 400


# Files that are not what they are called


def excel(file):
    import zipfile

    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")


CONTENTS = {
    "a zip file, as Excel writes (.xlsx): save the table as CSV": excel,
    "an Excel file (.xls); save": lambda file: file.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)),
    "packed with gzip; call packed CSV .csv.gz": lambda file: file.write_bytes(gzip.compress(b"id,a\nr0,0.5\n")),
    "a Parquet file; call it .parquet": lambda file: pd.DataFrame(P).rename(columns=str).to_parquet(file),
    "an Arrow file; call it .arrow": lambda file: pd.DataFrame(P).rename(columns=str).to_feather(file),
    "text in UTF-16; save it in UTF-8": lambda file: file.write_text("id,a\nr0,0.5\n", encoding="utf-16"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_files_that_are_no_csv(what, folder):
    CONTENTS[what](folder / "x.csv")
    assert refused("decide", "x.csv", "-o", "q.csv").startswith(f"x.csv: is not csv, but {what}")
    with pytest.raises(abstain.InvalidDataset, match=r"x\.csv: is not csv, but"):
        read_table("x.csv")


def test_csv_that_is_called_something_else():
    Path("p.csv").rename("p.parquet")
    assert refused("decide", "p.parquet", "-o", "q.csv").startswith("p.parquet: cannot be read")
    run("decide", "p.parquet", "--format", "csv", "-o", "q.csv")


# Pipes


def written(data, name="pipe"):
    """A named pipe into which something is written as soon as somebody reads it."""
    os.mkfifo(name)
    threading.Thread(target=lambda: Path(name).write_bytes(data), daemon=True).start()
    return name


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "arrows", "npy", "npz"])
def test_a_pipe_is_read_as_it_comes(kind):
    write_table(Table(P, list("abc"), IDS), f"x.{kind}")
    run("decide", f"x.{kind}", "-o", "expected.csv")
    run("decide", written(Path(f"x.{kind}").read_bytes()), "-o", "q.csv")
    assert Path("q.csv").read_text() == Path("expected.csv").read_text()


def test_a_pipe_is_read_twice_for_a_budget():
    price = json.loads(run("budget", "p.csv", "--rate", "0.1", "--json").output)["price"]
    result = run("budget", written(Path("p.csv").read_bytes()), "--rate", "0.1", "--json", "-o", "q.csv")
    assert json.loads(result.output)["price"] == price


def test_two_pipes_beside_each_other():
    run("decide", "p.csv", "-o", "q.csv")
    expected = json.loads(run("evaluate", "q.csv", "truth.csv", "--json").output)
    command = f"{sys.executable} -m abstain evaluate <(cat q.csv) <(cat truth.csv) --json"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown) == expected


def test_pipes_where_they_cannot_be_read():
    said = refused("decide", written(Path("p.csv").read_bytes()), "-o", "out/")
    assert said == "pipe: has no name to use in a folder; give a file as output"
    said = refused("decide", "p.csv", "--penalty", written(b"label,cost\na,1\nb,1\nc,1\n", "prices.csv"), "-o", "q.csv")
    assert said == "prices.csv: can be read only once; save it as a file"
    write_table(Table(P > 0.5, list("cba"), IDS), "order.csv")
    said = refused("evaluate", "truth.csv", written(Path("order.csv").read_bytes(), "pipe2"))
    assert said == "pipe2: the labels must be the same as in the other table, in the same order"
