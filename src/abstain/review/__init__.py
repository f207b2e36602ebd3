"""The review queue: abstained labels in the order in which humans should review them.

It may import `_core` and `_utils`. Begin with `review_queue`; the answers of reviewers are read in
`abstain._core.review_answers`, for `PartialPrediction.fill`.
"""

from abstain.review._queue import ReviewQueue, review_queue

__all__ = ["ReviewQueue", "review_queue"]


def __dir__() -> list[str]:
    return __all__
