"""The public surface, and the promise that the kernels are compiled once."""

import subprocess
import sys

import numba
import pytest

import abstain


def test_names_are_sorted_and_there():
    constants = [name for name in abstain.__all__ if name.isupper()]
    classes = [name for name in abstain.__all__ if name[0].isupper() and not name.isupper()]
    functions = [name for name in abstain.__all__ if name[0].islower()]
    assert abstain.__all__ == [*sorted(constants), *sorted(classes), *sorted(functions)]
    assert all(hasattr(abstain, name) for name in abstain.__all__)


def test_completion_offers_public_names_only():
    assert dir(abstain) == sorted([*abstain.__all__, "__version__"])


def test_every_public_name_says_what_it_is():
    assert all(getattr(abstain, name).__doc__ for name in abstain.__all__)


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
    abstain.risk_profile([[0.5, 0.7]], loss).decide(0.1)
    abstain.decide([[0.5, 0.7]], loss, abstain.Concave(0.1))
kernels = [labelwise.score, choice.choose, overlap.decide_overlap, overlap.profile_of_overlap, checking.all_inside]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[1].stdout == "0\n"
