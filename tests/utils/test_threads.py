"""How many threads work."""

import pytest
from tests.support.cases import random_probabilities

import abstain

P = random_probabilities(50, 7)


def test_number_of_threads_is_checked(monkeypatch):
    monkeypatch.setenv("ABSTAIN_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="ABSTAIN_NUM_THREADS is 'many'; expected a whole number"):
        abstain.decide(P)
