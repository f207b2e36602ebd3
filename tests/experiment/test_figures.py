"""The figures: what is drawn is compared with the tables, and the files with one another."""

import sys
from itertools import product

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from abstain.experiment import _models
from abstain.experiment._figures import FIXED_LINES, PENALTY_LINES, RELATED_LINES, draw, penalty_figure, related_figure
from abstain.experiment._protocol import SCALES, penalties_of
from abstain.experiment._results import Results

pytestmark = pytest.mark.slow

N_LABELS = {"emotions": 6, "yeast": 14, "scene": 5, "cal500": 174, "mediamill": 101, "nus-wide": 81}


def made_up(datasets=("emotions", "yeast"), learners=("br-lr",), losses=("hamming", "f1"), n_folds=2, n_steps=5):
    """Results of random numbers, with the costs of the papers."""
    random = np.random.default_rng(0)
    results, coverage = [], []
    for name, learner, loss, fold in product(datasets, learners, losses, range(n_folds)):
        keys = {"dataset": name, "learner": learner, "loss": loss, "fold": fold}
        m, mlc = N_LABELS[name], random.random()
        for penalty, cost, function in penalties_of(loss, m):
            everything = SCALES[loss].factor(m) * function.bind(m).counts[m]
            about = {"penalty": penalty, "cost": cost, "n_instances": 60.0, "n_labels": float(m)}
            numbers = {"generalized_loss": random.random(), "abstention": 100 * random.random()}
            results.append({**keys, **about, **numbers, "mlc": mlc, "abs": everything})
        for step in range(n_steps):
            share, risks = (step + random.random()) / n_steps, random.random(len(RELATED_LINES))
            coverage.append({**keys, "step": step, "coverage": share, **dict(zip(RELATED_LINES, risks, strict=True))})
    return Results(pd.DataFrame(results), pd.DataFrame(coverage), pd.DataFrame(), {})


def rows(table, dataset, learner, loss):
    return table[(table["dataset"] == dataset) & (table["learner"] == learner) & (table["loss"] == loss)]


def lines(axes):
    """The lines by their labels."""
    return {line.get_label(): line for line in axes.get_lines()}


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


@pytest.mark.parametrize("loss", SCALES)
def test_every_line_of_a_penalty_figure_is_in_the_summary(loss):
    results = made_up(losses=("hamming", loss) if loss != "hamming" else ("hamming",), learners=("cc-lr", "br-lr"))
    figure = penalty_figure(results, loss, "br-lr")
    above, below = figure.axes[:2], figure.axes[2:]
    assert titles(figure) == ["emotions", "yeast"]
    steps = SCALES[loss].highest_cost["SEP"] * np.arange(1, 11) / 10
    for name, top, bottom in zip(("emotions", "yeast"), above, below, strict=True):
        table = rows(results.summary(), name, "br-lr", loss)
        drawn = lines(top)
        assert set(drawn) == {line.label for line in (*FIXED_LINES.values(), *PENALTY_LINES.values())}
        for penalty, line in PENALTY_LINES.items():
            part = table[table["penalty"] == penalty].sort_values("cost")
            for axes, column in ((top, "generalized_loss"), (bottom, "abstention")):
                x, y = lines(axes)[line.label].get_data()
                np.testing.assert_allclose(x, steps)
                np.testing.assert_array_equal(y, part[column])
            for column, fixed in FIXED_LINES.items():  # drawn once, and right for both penalties
                x, y = drawn[fixed.label].get_data()
                np.testing.assert_allclose(x, steps)
                np.testing.assert_allclose(y, part[column])


def test_bands_are_standard_errors():
    results = made_up(n_folds=3)
    band = penalty_figure(results, "hamming", "br-lr").axes[0].collections[2]  # after MLC and ABS: SEP
    low, high = band.get_paths()[0].get_extents().intervaly
    table = rows(results.summary(), "emotions", "br-lr", "hamming").query("penalty == 'SEP'")
    assert low == pytest.approx((table["generalized_loss"] - table["generalized_loss_se"]).min())
    assert high == pytest.approx((table["generalized_loss"] + table["generalized_loss_se"]).max())


def test_both_costs_are_written_at_the_axis():
    figure = penalty_figure(made_up(), "f1", "br-lr")
    left = figure.axes[2]
    assert [tick.get_text() for tick in left.get_xticklabels()] == [
        "0.2\n0.4",
        "0.4\n0.8",
        "0.6\n1.2",
        "0.8\n1.6",
        "1\n2",
    ]
    assert [text.get_text() for text in left.texts] == ["SEP c·m\nPAR c·m"]
    plain = penalty_figure(made_up(), "hamming", "br-lr").axes[2]
    assert [text.get_text() for text in plain.texts] == ["SEP c\nPAR c"]


def test_full_abstention_leaves_the_frame_and_nothing_else_does():
    results = made_up(losses=("hamming",))
    above = penalty_figure(results, "hamming", "br-lr").axes[0]
    _, top = above.get_ylim()
    for label, line in lines(above).items():
        assert (line.get_ydata().max() > top) == (label == FIXED_LINES["abs"].label)


def test_every_line_of_a_related_figure_is_a_mean_of_the_folds():
    results = made_up(learners=("br-lr", "cc-lr"), losses=("rank", "subset"))
    figure = related_figure(results, "cc-lr")
    panels = [(loss, name) for loss in ("rank", "subset") for name in ("emotions", "yeast")]
    for axes, (loss, name) in zip(figure.axes, panels, strict=True):
        table = rows(results.coverage, name, "cc-lr", loss)
        folds = [part.sort_values("step") for _, part in table.groupby("fold")]
        for column, line in RELATED_LINES.items():
            x, y = lines(axes)[line.label].get_data()
            assert (x[0], y[0]) == (100.0, 0.0)
            np.testing.assert_allclose(x[1:], 100 * (1 - np.mean([part["coverage"] for part in folds], axis=0)))
            np.testing.assert_allclose(y[1:], np.mean([part[column] for part in folds], axis=0))
    assert [axes.get_ylabel() for axes in figure.axes] == ["rank loss / m", "", "subset 0/1 loss", ""]


def test_a_curve_that_is_not_there_stays_empty():
    results = made_up(losses=("rank", "f1"))
    missing = results.coverage.query("dataset != 'yeast' or loss != 'f1'")
    figure = related_figure(Results(results.results, missing, results.timings, {}), "br-lr")
    assert [len(axes.get_lines()[0].get_xdata()) for axes in figure.axes] == [6, 6, 6, 0]


def test_there_is_a_file_for_each_loss_and_learner_in_each_format(tmp_path):
    results = made_up(("scene",), ("br-lr", "ecc-nystroem-svm+isotonic"), ("f1",))
    files = draw(results, tmp_path / "new" / "folder")
    learners = "br-lr", "ecc-nystroem-svm-isotonic"
    stems = {f"{what}-{learner}" for what in ("f1", "related-work") for learner in learners}
    assert {file.name for file in files} == {f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png")}
    assert set((tmp_path / "new" / "folder").iterdir()) == set(files)  # and no drafts
    for file in files:
        assert file.read_bytes().startswith(b"%PDF" if file.suffix == ".pdf" else b"\x89PNG")


def test_the_same_results_give_the_same_bytes_whatever_the_user_likes(tmp_path):
    results = made_up(("scene",), losses=("f1",))
    first = draw(results, tmp_path / "a", ("pdf", "png", "svg"))
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "black", "pdf.fonttype": 3}):
        second = draw(results, tmp_path / "b", ("pdf", "png", "svg"))
        assert mpl.rcParams["font.size"] == 20
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert not any(b"CreationDate" in file.read_bytes() for file in first)


def test_fonts_are_embedded(tmp_path):
    file = draw(made_up(datasets=("scene",), losses=("hamming",)), tmp_path, ("pdf",))[0]
    assert b"/FontFile2" in file.read_bytes()
    assert b"/Type3" not in file.read_bytes()


@pytest.mark.parametrize("datasets", [("scene",), tuple(N_LABELS)])
def test_nothing_overlaps_or_is_cut_off(datasets):
    longest = "ecc-nystroem-svm+isotonic"
    results = made_up(datasets, (longest,), ("hamming", "rank", "f1"))
    for figure in (penalty_figure(results, "hamming", longest), related_figure(results, longest)):
        figure.draw_without_rendering()
        assert titles(figure) == list(datasets)
        texts = [figure._suptitle, *(axes.title for axes in figure.axes if axes.get_title())]
        texts += [axes.yaxis.label for axes in figure.axes if axes.get_ylabel()]
        texts += [text for axes in figure.axes for text in axes.texts]
        boxes = [text.get_window_extent() for text in (*texts, figure.legends[0])]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
        assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in boxes)
        assert min(text.get_fontsize() for text in figure.findobj(mpl.text.Text) if text.get_text()) >= 7


def test_lines_are_told_apart_without_colours():
    for group in ((*FIXED_LINES.values(), *PENALTY_LINES.values()), RELATED_LINES.values()):
        for looks in zip(*((line.label, line.color, line.linestyle, line.marker) for line in group), strict=True):
            assert len(set(looks)) == 4


@pytest.mark.parametrize("learner", ["cc-svm", "trees+sigmoid", "my own"])
def test_titles_are_in_words(learner):
    figure = penalty_figure(made_up(learners=(learner,)), "hamming", learner)
    words = {
        "cc-svm": "classifier chain with support vector machines",
        "trees+sigmoid": "extremely randomised trees, sigmoid calibration",
        "my own": "my own",
    }
    assert figure.get_suptitle().replace("\n", ": ") == f"Generalised loss, Hamming: {words[learner]}"


def test_every_loss_and_learner_has_words():
    for learner in _models.NAMES:
        title = related_figure(made_up(("scene",), (learner,), ("f1",)), learner).get_suptitle()
        assert f": {learner}" not in title.replace("\n", ": ")


def test_learners_that_never_err_are_drawn(tmp_path):
    results = made_up(("scene",), losses=("f1",))
    zeros = {"generalized_loss": 0.0, "mlc": 0.0, "abstention": 0.0}
    assert draw(Results(results.results.assign(**zeros), results.coverage, results.timings, {}), tmp_path, ["png"])


def test_a_failed_drawing_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "hamming-br-lr.png"
    file.write_bytes(b"old")

    def fail(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(mpl.figure.Figure, "savefig", fail)
    with pytest.raises(OSError, match="no space left"):
        draw(made_up(losses=("hamming",)), tmp_path, ["png"])
    assert [path.name for path in tmp_path.iterdir()] == ["hamming-br-lr.png"]
    assert file.read_bytes() == b"old"


def test_without_matplotlib_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"the figures need matplotlib: pip install matplotlib"):
        draw(made_up(losses=("hamming",)), tmp_path)
