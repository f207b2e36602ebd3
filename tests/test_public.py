"""The public surface: which names there are, what they say of themselves, and where they may be imported from."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numba
import pytest

import abstain

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "abstain"

# The list of public names: whoever adds, renames or removes one changes it here, and writes it in CHANGELOG.md.
PUBLIC = {
    "abstain": [
        "ABSTAIN",
        "AbstainError",
        "AbstainingClassifier",
        "BoundPenalty",
        "Capped",
        "Concave",
        "CostPath",
        "Counting",
        "DatasetWarning",
        "DecomposableLoss",
        "DownloadFailed",
        "FMeasure",
        "FitFailed",
        "Hamming",
        "Intervals",
        "InvalidBudget",
        "InvalidDataset",
        "InvalidGuarantee",
        "InvalidLabels",
        "InvalidLoss",
        "InvalidOutput",
        "InvalidParameter",
        "InvalidPenalty",
        "InvalidProbabilities",
        "Jaccard",
        "Linear",
        "Loss",
        "MissingFile",
        "Mixture",
        "NoProbabilities",
        "PartialPrediction",
        "PartialRanking",
        "Penalty",
        "PerLabel",
        "ProbabilityWarning",
        "Rank",
        "ReviewQueue",
        "RiskProfile",
        "Samples",
        "SubsetZeroOne",
        "Table",
        "TemporaryFileFailed",
        "Verdict",
        "__version__",
        "budget",
        "calibration",
        "curves",
        "datasets",
        "decide",
        "exhaustive",
        "experiment",
        "guarantee",
        "integrations",
        "is_monotone",
        "is_uncertainty_aligned",
        "label_distribution",
        "label_probabilities",
        "learners",
        "make_abstention_scorer",
        "metrics",
        "read_table",
        "report",
        "review",
        "review_queue",
        "risk_profile",
        "streams",
        "write_table",
    ],
    "abstain.budget": ["Allocation", "Bill", "Price", "solve"],
    "abstain.calibration": [
        "BrierDecomposition",
        "Calibration",
        "ReliabilityCurve",
        "ReliabilityDisplay",
        "brier_decomposition",
        "brier_score_loss",
        "calibration_error",
        "fit",
        "reliability_curve",
    ],
    "abstain.curves": [
        "AccuracyRejectionCurve",
        "AccuracyRejectionDisplay",
        "Band",
        "CostCurve",
        "CostCurveDisplay",
        "CostPoint",
        "ErrorCaptureCurve",
        "ErrorCaptureDisplay",
        "LabelTable",
        "RiskCoverageCurve",
        "RiskCoverageDisplay",
        "accuracy_rejection_curve",
        "cost_curve",
        "error_capture_curve",
        "label_table",
        "risk_coverage_curve",
    ],
    "abstain.datasets": ["DATASETS", "fetch", "load_digit_pairs", "load_mulan"],
    "abstain.exhaustive": ["decide", "expected_losses", "partial_predictions", "partial_rankings"],
    "abstain.experiment": ["Plan", "Problem", "Results", "Unfetched", "load", "look_up", "run"],
    "abstain.guarantee": ["RISKS", "Rule", "control"],
    "abstain.integrations": ["spark"],
    "abstain.integrations.spark": ["decide"],
    "abstain.learners": ["NAMES", "make", "recommended"],
    "abstain.metrics": [
        "abstention_rate",
        "answered_error_rate",
        "error_capture_rate",
        "expected_generalized_loss",
        "generalized_loss",
    ],
    "abstain.review": ["ReviewQueue", "review_queue"],
    "abstain.streams": [
        "FileAllocation",
        "Job",
        "Scores",
        "Sources",
        "Summary",
        "budget_files",
        "calibrate_files",
        "decide_file",
        "decide_files",
        "evaluate_files",
        "fit_calibration",
        "open_aligned",
        "open_intervals",
        "open_sources",
        "read_aligned",
    ],
}
MODULES = list(PUBLIC)


def public_module(name):
    if name == "abstain.integrations.spark":
        pytest.importorskip("pyspark")
        return importlib.import_module(name)
    return abstain if name == "abstain" else getattr(abstain, name.removeprefix("abstain."))


@pytest.mark.parametrize("module", MODULES)
def test_these_names_are_public_and_no_others(module):
    assert dir(public_module(module)) == PUBLIC[module]


def test_every_public_module_is_listed():
    modules = {f"abstain.{name}" for name in PUBLIC["abstain"] if isinstance(getattr(abstain, name), ModuleType)}
    assert modules | {"abstain", "abstain.integrations.spark"} == set(PUBLIC)


def parse(module):
    """The source of a module, given by its name."""
    path = SOURCE.parent / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def test_type_checkers_see_the_names_that_are_found_at_run_time():
    condition = next(
        node for node in parse("abstain").body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    assert all(alias.asname == alias.name for imported in condition.body for alias in imported.names)
    seen = {imported.module: tuple(alias.name for alias in imported.names) for imported in condition.body}
    submodules = {name: f"{module}.{name}" for module in ("abstain", "abstain._core") for name in seen.pop(module)}
    assert submodules == abstain._SUBMODULES
    assert list(seen.items()) == list(abstain._EXPORTS.items())
    assert list(abstain._EXPORTS) == sorted(abstain._EXPORTS)
    assert all(list(names) == sorted(names) for names in abstain._EXPORTS.values())


def docstring_of_constant(module, name):
    """The text below an assignment, in the module that makes it."""
    body = parse(module).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return docstring_of_constant(node.module, name)
        match node:
            case ast.Assign(targets=[ast.Name(id=assigned)]) | ast.AnnAssign(target=ast.Name(id=assigned)):
                if assigned == name:
                    return following.value.value if is_text(following) else None
    return None


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def own_docstring(module, name):
    """What a public name says of itself: not what its class says, and not what was generated."""
    found = getattr(public_module(module), name)
    if inspect.isclass(found):
        text = vars(found).get("__doc__")
        return None if text is None or text.startswith(f"{found.__name__}(") else text
    if inspect.isroutine(found) or isinstance(found, ModuleType):
        return found.__doc__
    return docstring_of_constant(abstain._MODULE_OF[name] if module == "abstain" else module, name)


NAMES = [(module, name) for module, names in PUBLIC.items() for name in names if name not in ("__version__", "spark")]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_name_says_what_it_is(module, name):
    assert own_docstring(module, name)


DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CONSTRUCTED = {  # the classes that users make themselves; the others are made by functions
    "AbstainingClassifier",
    "Capped",
    "Concave",
    "Counting",
    "FMeasure",
    "Hamming",
    "Intervals",
    "Jaccard",
    "Job",
    "Linear",
    "PartialPrediction",
    "PartialRanking",
    "PerLabel",
    "Plan",
    "Table",
}


def public(is_wanted):
    """The public names of a kind; Spark's are left out, since it may not be installed."""
    names = [(module, name) for module, name in NAMES if module != "abstain.integrations.spark"]
    return [(module, name) for module, name in names if is_wanted(getattr(public_module(module), name, None))]


def docstrings():
    """Every docstring of the package, and where it stands."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(SOURCE)}: {getattr(node, 'name', 'module')}", text


def test_docstrings_stand_alone():
    assert [place for place, text in docstrings() if text.startswith("The same")] == []


def sections(text):
    """The numpydoc sections of a docstring, by title."""
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_parameters(text):
    """The names at the beginning of lines that are not indented: ``rate, count : float``."""
    lines = [line for line in sections(text).get("Parameters", "").splitlines() if re.match(r"\w|\*", line)]
    return [name.strip(" *") for line in lines for name in line.split(" : ")[0].split(",")]


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize(("module", "name"), public(inspect.isfunction))
def test_every_argument_of_a_function_is_documented(module, name):
    function = getattr(public_module(module), name)
    assert sorted(documented_parameters(function.__doc__)) == sorted(parameters(function))


@pytest.mark.parametrize(("module", "name"), public(inspect.isfunction))
def test_every_function_says_what_it_returns(module, name):
    function = getattr(public_module(module), name)
    is_procedure = inspect.signature(function).return_annotation in (None, "None")
    assert is_procedure or "Returns" in sections(function.__doc__)


@pytest.mark.parametrize(("module", "name"), public(lambda found: getattr(found, "__name__", "") in CONSTRUCTED))
def test_every_argument_of_a_constructor_is_documented(module, name):
    made = getattr(public_module(module), name)
    assert sorted(documented_parameters(made.__doc__)) == sorted(parameters(made))


@pytest.mark.parametrize(("module", "name"), public(lambda found: inspect.isfunction(found) or inspect.isclass(found)))
def test_examples_import_public_names_only(module, name):
    text = getattr(public_module(module), name).__doc__ or ""
    assert re.findall(r">>> .*\babstain(?:\.\w+)*\._\w+.*", text) == []


def test_the_root_can_be_read_at_a_glance():
    assert len([entry for entry in SOURCE.iterdir() if entry.name != "__pycache__"]) <= 18


def test_imports_point_down_without_exceptions():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    floors = contracts[0]
    assert (floors["type"], floors["containers"], floors["exhaustive"]) == ("layers", ["abstain"], True)
    assert len(floors["layers"]) <= 9
    assert not any("ignore_imports" in contract for contract in contracts)


def test_light_imports():
    """What is heavy and not always needed is not imported with the package."""
    code = "import sys, abstain; print({'sklearn', 'pandas', 'polars', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_kernels_work_where_nothing_can_be_written(monkeypatch):
    from abstain._utils import compilation

    def nowhere(*, cache=False, **options):
        if cache:
            raise RuntimeError("no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(compilation, "njit", nowhere)
    assert compilation.kernel(lambda x: x + 1)(1) == 2


@pytest.mark.slow
def test_a_later_process_reuses_compiled_kernels():
    code = """
import abstain
from abstain._core.kernels import labelwise, checking, choice, overlap
for loss in ("hamming", "f1", "rank", "subset"):
    abstain.risk_profile([[0.5, 0.7]], loss=loss).decide(0.1)
    abstain.decide([[0.5, 0.7]], loss, abstain.Concave(0.1))
kernels = [labelwise.score, choice.choose, overlap.decide_overlap, overlap.profile_of_overlap, checking.all_inside]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[1].stdout == "0\n"
