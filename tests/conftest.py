import pytest


@pytest.fixture(params=["1", "2", "5"])
def threads(request, monkeypatch):
    """Results do not depend on how many threads there are."""
    monkeypatch.setenv("ABSTAIN_NUM_THREADS", request.param)
    return int(request.param)
