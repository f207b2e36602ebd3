"""One base for all errors, which are where users import them from."""

import inspect
import pickle

import pytest

import abstain
from abstain._utils import errors

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
RAISED = [kind for kind in ERRORS if not issubclass(kind, Warning)]


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_all_errors_have_one_base(kind):
    assert issubclass(kind, abstain.AbstainError)
    assert issubclass(kind, ValueError)
    with pytest.raises(abstain.AbstainError, match="what is wrong"):
        raise kind("what is wrong")


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_all_errors_are_public(kind):
    assert getattr(abstain, kind.__name__) is kind


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_tracebacks_and_pickles_name_the_public_place(kind):
    assert (kind.__module__, kind.__qualname__) == ("abstain", kind.__name__)
    again = pickle.loads(pickle.dumps(kind("what is wrong")))
    assert (type(again), str(again)) == (kind, "what is wrong")
    assert isinstance(kind.__new__(kind), kind)  # as Dask's workers make it anew


def test_errors_of_files_and_learners_are_of_their_kinds_too():
    assert issubclass(abstain.MissingFile, FileNotFoundError)
    assert issubclass(abstain.DownloadFailed, OSError)
    assert issubclass(abstain.TemporaryFileFailed, OSError)
    assert issubclass(abstain.FitFailed, RuntimeError)
