"""Monotonicity by its definition: every truth, every answer, every step for the worse."""

from itertools import product

import pytest

from abstain.metrics import generalized_loss


def slow_is_monotone(loss, penalty, m):
    """Every truth, every answer, every single label made worse by one step: right → abstained → wrong."""
    for y in product((0, 1), repeat=m):
        for answers in product((0, 1, -1), repeat=m):
            for i in range(m):
                if answers[i] == -1:
                    worse = 1 - y[i]
                elif answers[i] == y[i]:
                    worse = -1
                else:
                    continue
                other = (*answers[:i], worse, *answers[i + 1 :])
                here, there = (generalized_loss([y], [codes], loss=loss, penalty=penalty) for codes in (answers, other))
                if here > there + 1e-9:
                    return False
    return True


def assert_witness(step, loss, penalty):
    """The step goes from a wrong answer to an abstention, or from that to the right answer, and costs more."""
    before, after = (
        generalized_loss([step.truth], [codes], loss=loss, penalty=penalty) for codes in (step.before, step.after)
    )
    assert (before, after) == (pytest.approx(step.loss_before), pytest.approx(step.loss_after))
    assert after > before
    changed = [i for i in range(len(step.truth)) if step.before[i] != step.after[i]]
    assert len(changed) == 1
    right, before_answer, after_answer = (codes[changed[0]] for codes in (step.truth, step.before, step.after))
    assert (before_answer, after_answer) in {(1 - right, -1), (-1, right)}
