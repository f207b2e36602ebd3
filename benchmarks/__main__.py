"""``make bench``: measure everything and write docs/performance.md.

``python -m benchmarks budgets report`` measures only the sections whose titles begin so, and keeps the others.
"""

import sys

from benchmarks import budgets, dense, guarantee, interval_speed, joint_speed, labels, learning, overlap, report
from benchmarks.page import DOCS, Section, machine, write

SECTIONS = [
    Section(
        "Large tables",
        "1 000 000 × 100 uniform probabilities, float64, all cores; NumPy's copy and sort use one.",
        dense.speed(),
    ),
    Section(
        "F-measure and Jaccard index",
        "One thread each, the same answers within 1e-10 (checked in the run). The reference for F1 is the paper's "
        "Algorithm 2, for the others the like with the same O(m³) growth, all compiled with numba "
        "(`tests/oracles/overlap.py`). Penalties: linear and concave with c = 0.1/m … 1/m and 0.2/m … 2/m.",
        overlap.speed(),
    ),
    Section(
        "Intervals",
        "Decisions from intervals (minimax) against decisions from their midpoints, one thread, linear penalties. "
        "Comonotone intervals: p ± 0.03, sorted. Venn–Abers: intervals for new rows of published data, scored by "
        "logistic regression and calibrated on cross-fitted scores; of few labels the rows are repeated up to 20 000. "
        "What is not proved optimal within the limit of nodes has a `gap`.",
        interval_speed.speed(),
    ),
    Section(
        "Joint distributions",
        "Decisions from samples of the labels of each instance, with random weights, two threads; made-up topics. The "
        "gap is how much less, at most, any other partial prediction is expected to lose.",
        joint_speed.speed(),
    ),
    Section(
        "Twenty penalties from one profile",
        "100 000 × 100 uniform probabilities, twenty concave penalties, all answers written. It pays where a "
        "decision takes long. For Hamming, subset 0/1 and rank a decision is little more than a sort, and reading the "
        "profile and writing the answers twenty times takes longer than one sort, however little is computed.",
        dense.twenty_penalties(),
    ),
    Section(
        "Budgets",
        "1 000 000 × 100 probabilities, all cores, against one decision at the price that the budget leads to. The "
        "gap is how much less, at most, any other allocation of as many reviews could lose.",
        budgets.speed(),
    ),
    Section(
        "Budgets with crossing caps",
        "Caps per instance and per label at once are a matching, solved by linear programming.",
        budgets.crossing_caps(),
    ),
    Section(
        "Guarantees, beside MAPIE",
        "Calibrated on 5 000 × 100, tried on 20 000 new instances; one made-up data set and seed, 95 % confidence. "
        "The guarantees are not quite the same: for MAPIE's `MultiLabelClassificationController`, an instance for "
        "which nothing is predicted has a precision of 0, here it does not count. MAPIE answers every label and "
        "can move its threshold below ½, so that it finds more where the target is easy; here labels are left "
        "open, and what is answered is the most probable answer. It refuses instances without relevant labels; "
        "the data has none, and its strength was chosen so that MAPIE can meet the middle target (with a weaker "
        "signal it certified nothing).",
        guarantee.beside_mapie(),
    ),
    Section(
        "The report",
        "20 000 × 50 probabilities with truth, Hamming and F1, in Chromium without a window; the best of three "
        "openings, the median and the worst of 25 moves of a slider, from the event until it is painted.\n\n"
        "![The report of the demo](report.png)",
        report.speed(),
    ),
    Section("Sparse probabilities", "In a process of their own.", labels.sparse()),
    Section(
        "Peak memory",
        "Beyond input and output, n × 100 probabilities, two threads, each in a process of its own.",
        dense.memory(),
    ),
    Section(
        "Growth with the number of labels",
        "One thread, uniform probabilities, concave penalty; the slope is that of the last four points.\n\n"
        "![Time per instance against the number of labels, log-log](growth.png)",
        labels.growth(DOCS / "growth.png"),
    ),
    Section(
        "Learners",
        "All cores. The loop is scikit-learn's `MultiOutputClassifier(LogisticRegression(max_iter=1000))`; the "
        "optimum is where it ends with a tolerance of 1e-9.",
        learning.learners(),
    ),
    Section("Files", "Peak memory of the whole process, in a process of its own.", learning.large_file()),
    Section("Start-up", "Best of five.", labels.start_up()),
]


INTRO = f"""# Performance

Written by `make bench`; do not edit. Ratios are taken within one run, because machines differ; seconds are for
orientation.

Measured on: {machine()}.
"""


if __name__ == "__main__":
    write(DOCS / "performance.md", INTRO, SECTIONS, sys.argv[1:])
    report.picture(DOCS / "report.png")
