import pytest

from abstain.streams._sizes import SIZES


@pytest.fixture
def small_sizes(monkeypatch):
    """Make batches and chunks of text so small that every table has many of them."""
    monkeypatch.setattr(SIZES, "batch_bytes", 1280)
    monkeypatch.setattr(SIZES, "text_chunk_bytes", 900)
