"""What notebooks show: tables and charts that are well formed, whatever labels and rows are called."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.support.cases import random_probabilities

import abstain
from abstain import budget, guarantee
from abstain._utils.html import MAX_POINTS, chart, table
from abstain.curves import accuracy_rejection_curve, cost_curve, error_capture_curve, label_table, risk_coverage_curve
from abstain.review._queue import review_queue

HOSTILE = ["<script>alert(1)</script>", "\"quoted\" & 'more'", "</table><b>", "a\u00a0– b", "plain"]


def example(n=60, names=HOSTILE):
    p = random_probabilities(n, len(names), seed=3)
    y = (np.random.default_rng(4).random(p.shape) < p).astype(int)
    return abstain.Table(p, names, [f"<i>{i}-{i}</i>" for i in range(n)]), y


def shown(thing):
    """What a notebook shows, as a tree: it must be well formed."""
    return ET.fromstring(f"<div>{thing._repr_html_()}</div>")


def cells(tree):
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def words(tree):
    return " ".join(tree.itertext())


def test_a_queue():
    p, _ = example()
    queue = review_queue(p, abstain.decide(p, penalty=0.1))
    head, *rows = cells(shown(queue))
    assert head == ["id", "label", "probability", "saves"]
    assert len(rows) == 8
    assert rows[0] == [
        f"<i>{queue.row[0]}-{queue.row[0]}</i>",
        HOSTILE[queue.label[0]],
        f"{queue.probability[0]:.4g}",
        f"{queue.saves[0]:.4g}",
    ]
    assert words(shown(queue)).startswith(f"ReviewQueue of {len(queue)} labels, saving ")
    assert words(shown(queue)).endswith(f"… {len(queue) - 8} more")
    assert "white-space:nowrap" in next(shown(queue).iter("td")).get("style")  # ids are not broken at "-"


def test_a_queue_of_one_and_of_none():
    one = review_queue([[0.5, 0.9]], abstain.decide([[0.5, 0.9]], penalty=0.2))
    assert words(shown(one)).startswith("ReviewQueue of 1 label, saving 0.5 in all")
    none = review_queue([[0.9]], abstain.decide([[0.9]], penalty=0.2))
    assert len(cells(shown(none))) == 1


def test_an_allocation():
    p, _ = example()
    found = budget.solve(p, count=7, review=0.01)
    written = dict(cells(shown(found))[1:])
    assert written["reviews"] == written["reviews allowed"] == "7"
    assert written["instances × labels"] == "60 × 5"
    assert float(written["in all"]) == pytest.approx(found.bill.total, rel=1e-3)
    assert float(written["price of a review"]) == pytest.approx(float(found.price), rel=1e-3)
    assert dict(cells(shown(budget.solve(p, review=0.01)))[1:])["reviews allowed"] == "no limit"


def test_a_rule_for_all_labels():
    p, y = example(400)
    rule = guarantee.control(p, y, target=0.2)
    assert rule.satisfied
    (row,) = cells(shown(rule))[1:]
    assert row == ["all labels", f"{rule.cost:.4g}", f"{rule.estimate:.4g}", f"{rule.abstention:.1%}"]
    assert words(shown(rule)).startswith(repr(rule).splitlines()[0])


def test_a_rule_for_each_label():
    p, y = example(400)
    y[:, 2] = 1 - (p.values[:, 2] > 0.5)  # nothing can be shown of it
    rule = guarantee.control(p, y, target=0.2, per="label")
    rows = cells(shown(rule))[1:]
    assert [row[0] for row in rows] == HOSTILE
    for row, satisfied, cost in zip(rows, rule.satisfied, rule.cost, strict=True):
        assert row[1] == (f"{cost:.4g}" if satisfied else "left open")
    assert rows[2][1] == "left open"
    assert any(rule.satisfied)


def test_a_table_of_labels():
    p, y = example()
    found = label_table(p, y_true=y)
    head, *rows = cells(shown(found))
    assert head[:3] == ["label", "mean probability", "abstention rate"]
    assert [row[0] for row in rows] == HOSTILE
    assert rows[1][1:] == [
        str(values[1]) if values.dtype.kind == "i" else f"{values[1]:.3f}" for values in found.columns.values()
    ]
    many, _ = example(5, [f"label {j}" for j in range(23)])
    assert len(cells(shown(label_table(many)))) == 1 + 20
    assert words(shown(label_table(many))).endswith("… 3 more")


@pytest.mark.parametrize(
    "make", [cost_curve, risk_coverage_curve, accuracy_rejection_curve, error_capture_curve], ids=lambda f: f.__name__
)
def test_curves(make):
    p, y = example()
    curve = make(probabilities=p, y_true=y)
    tree = shown(curve)
    assert words(tree).startswith(repr(curve))
    (line,) = tree.iter("polyline")
    points = np.array([point.split(",") for point in line.get("points").split()], dtype=float)
    assert np.all((points >= 0) & (points <= [360, 190]))
    assert len(points) >= len(curve.costs) - 1
    assert next(tree.iter("svg")).get("fill") == "currentColor"  # text as dark or light as that around it


def test_a_curve_without_the_truth():
    assert "expected loss of the answers" in words(shown(cost_curve(example()[0])))


def test_charts_of_little_and_of_much():
    for x, y in (([], []), ([0.0], [0.0]), ([0.0, 1.0], [np.nan, np.nan])):
        ET.fromstring(chart("a < b", x, y, ("x", "y")))
    (line,) = ET.fromstring(chart("", np.arange(1e5), np.arange(1e5), ("<x>", "y"))).iter("polyline")
    points = line.get("points").split()
    assert len(points) == MAX_POINTS
    assert points[0] == "40.0,150.0"
    assert points[-1] == "340.0,20.0"  # the last point is kept


def test_steps_hold_until_the_next_point():
    (line,) = ET.fromstring(chart("", [0, 1, 2], [2, 1, 0], ("x", "y"), steps=True)).iter("polyline")
    down = [float(point.split(",")[1]) for point in line.get("points").split()]
    assert down == [20.0, 20.0, 85.0, 85.0, 150.0]


def test_texts_are_taken_as_they_are():
    tree = ET.fromstring(f"<div>{table('<b>', ['<i>'], [['</tr>']], '&amp;')}</div>")
    assert [text for text in tree.itertext() if text] == ["<b>", "<i>", "</tr>", "&amp;"]


def test_one_is_not_called_several():
    profile = abstain.risk_profile([0.9], loss="hamming")
    assert repr(profile).startswith("RiskProfile of 1 instance × 1 label for ")
    assert repr(profile.path()) == "CostPath of 1 instance: 1 break point"
    assert repr(cost_curve([[0.9]])).startswith("CostCurve of 1 instance × 1 label for Hamming(): 1 break point up to ")
    assert repr(budget.solve([[0.6]], count=1)).startswith(
        "Allocation: 1 of 1 review (100.0% of 1 instance × 1 label) "
    )
    assert repr(budget.solve([[0.6]], review=0.1)).startswith("Allocation: 1 review (100.0% of 1 instance × 1 label) ")
    assert repr(label_table([[0.9]])).startswith("LabelTable of 1 label, 1 instance\n")
