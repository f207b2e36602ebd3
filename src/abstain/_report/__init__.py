"""The report: one HTML page without a network, in which a reader tries costs and sees what is left to a human.

It may import the floors of curves, learners and streams and all below them, not the integrations, experiments or the
command line. Start with `payload.build_payload` (what a page holds) and `page.render` (how it is put together); of the
page's own code in `assets`, with `engine/problem.js` (decides) and `view/main.js` (draws).
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abstain._report.document import Report
from abstain._report.page import render
from abstain._report.payload import build_payload
from abstain._report.prices import Prices
from abstain._utils.atomic import require_writable

__all__ = ["Report", "report"]

DEFAULT_TITLE = "What to answer, and what to ask"


def report(
    probabilities: Any,
    y_true: Any = None,
    *,
    path: str | os.PathLike[str] | None = None,
    losses: Iterable[str] = ("hamming", "f1"),
    title: str | None = None,
    texts: Any = None,
    images: Any = None,
    review: float | None = None,
    false_negative: float = 1.0,
    false_positive: float = 1.0,
    max_entries: int = 1_000_000,
    random_state: int = 0,
) -> Report:
    """Make an HTML page in which a reader tries costs of asking, and sees what is answered, asked and saved.

    The page decides as `abstain.decide` does, for each loss and for linear and concave penalties. It holds all it
    needs: it can be mailed, and opens without a network.

    Parameters
    ----------
    probabilities : array-like, frame or sparse matrix of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`. The names of labels and rows are shown.
    y_true : array-like, frame or sparse matrix of shape (n_instances, n_labels), optional
        The relevant labels, 0 or 1. With them, the page also shows errors and reliability.
    path : str or path-like, optional
        The file to write the page to, whole or not at all. Without it, nothing is written.
    losses : iterable of str, default=("hamming", "f1")
        The names of the losses to choose from: "hamming", "f1", "jaccard", "rank", "subset". A loss of your own that
        is registered is listed in the page, but cannot be chosen there.
    title : str, optional
        The title of the page.
    texts : iterable of str or None, of length n_instances, optional
        A text to show with each row; None where there is none.
    images : array of shape (n_instances, height, width) or (n_instances, height, width, 3), or paths, optional
        An image to show with each row, or its path; None where there is none. Large ones are shrunk.
    review : float in [0, 1e12], optional
        The price of one review. Without it there is no bill.
    false_negative, false_positive : float in [0, 1e12], default=1.0
        What a relevant label answered 0 and an irrelevant label answered 1 cost. They are the costs of the Hamming
        loss, ``Hamming(false_negative, false_positive)``, and make the bill with `review`, whatever the loss. The
        reader can change all three.
    max_entries : int, default=1_000_000
        With more probabilities than that, rows are drawn at random, and the page says so.
    random_state : int, default=0
        The seed of the draw.

    Returns
    -------
    Report
        The page: ``html`` is its text, ``save(path)`` writes it, and a notebook shows it.

    Raises
    ------
    InvalidProbabilities, InvalidLabels, InvalidLoss
        If probabilities, truth or losses are not what they should be.
    InvalidParameter
        If a price, `max_entries`, `texts` or `images` is of the wrong kind, size or range.
    InvalidDataset, MissingFile
        If the file of an image cannot be read, or is not there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain import Table, report
    >>> table = Table([[0.97, 0.55], [0.3, 0.04]], ["sky", "sea"], ["a.png", "b.png"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(table, [[1, 0], [1, 0]], path=Path(folder) / "report.html", title="Beaches")
    ...     (Path(folder) / "report.html").read_text(encoding="utf-8") == page.html
    True
    >>> page.n_instances, page.n_labels, page.html[:15]
    (2, 2, '<!doctype html>')
    """
    prices = Prices(review, false_negative, false_positive)
    file = None if path is None else Path(path)
    if file is not None:
        require_writable(file)
    payload = build_payload(
        probabilities,
        y_true,
        losses=losses,
        title=DEFAULT_TITLE if title is None else str(title),
        texts=texts,
        images=images,
        prices=prices,
        max_entries=max_entries,
        random_state=random_state,
    )
    facts = payload.facts
    page = Report(render(payload), facts["title"], facts["nInstances"], facts["nLabels"], file)
    if file is not None:
        page.save(file)
    return page
