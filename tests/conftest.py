import pytest
from hypothesis import HealthCheck, settings

# Every run of the same code tries the same examples, however busy the machine is: a suite that is green stays so.
# (Hypothesis takes constants from the modules that are loaded, so changed code may bring other examples.)
# ``--hypothesis-profile=default`` looks for other examples.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

collect_ignore = ["typing"]  # scripts, not modules: tests/test_typing.py runs them

SLOW_FIXTURES = {"browser", "cluster", "spark"}
"""A test that uses one of them waits for a real Chromium, a Dask cluster or Spark."""


def pytest_collection_modifyitems(items):
    """Mark as slow what needs a real Chromium, a Dask cluster or Spark; ``-m "not slow"`` leaves it out."""
    for item in items:
        if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["1", "2", "5"])
def threads(request, monkeypatch):
    """Results do not depend on how many threads there are."""
    monkeypatch.setenv("ABSTAIN_NUM_THREADS", request.param)
    return int(request.param)
