"""The report: one HTML page, without a network, in which a reader tries costs and sees what is left to a human."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abstain._report.document import Report
from abstain._report.page import render
from abstain._report.payload import Prices, gather
from abstain._utils.atomic import require_writable

__all__ = ["Report", "report"]

TITLE = "What to answer, and what to ask"


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
    """One HTML page in which a reader tries costs of asking, and sees what is answered, what is asked, what it saves.

    The page decides as `abstain.decide` does, for each loss and for linear and concave penalties. It holds all it
    needs: it can be mailed, and opens without a network.

    Parameters
    ----------
    probabilities
        As for `abstain.decide`. The names of labels and rows are shown.
    y_true : n × m table of 0 and 1, optional
        What is relevant. With it, the page also shows errors and reliability.
    path : path, optional
        Where to write the page, whole or not at all. Without it, nothing is written.
    losses : names, default=("hamming", "f1")
        Of the losses to choose from: "hamming", "f1", "jaccard", "rank", "subset".
    title : str, optional
    texts : n texts, optional
        One to show with each row; None where there is none.
    images : array of shape (n, h, w) or (n, h, w, 3), or n paths, optional
        A picture to show with each row. Large ones are shrunk.
    review, false_negative, false_positive : float ≥ 0
        What a review, a missed label and a wrongly given one cost; the reader can change them. The last two are the
        costs of the Hamming loss, ``Hamming(false_negative, false_positive)``; all three make the bill, whatever the
        loss. Without `review` there is no bill.
    max_entries : int, default=1_000_000
        With more probabilities than that, rows are drawn at random, and the page says so.
    random_state : int, default=0
        Draws the rows.

    Returns
    -------
    Report
        The page: ``html`` is its text, ``save(path)`` writes it, and a notebook shows it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain._core.tables import Table
    >>> from abstain._report import report
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
    contents = gather(
        probabilities,
        y_true,
        losses=losses,
        title=TITLE if title is None else str(title),
        texts=texts,
        images=images,
        prices=prices,
        max_entries=max_entries,
        random_state=random_state,
    )
    facts = contents.facts
    page = Report(render(contents), facts["title"], facts["nInstances"], facts["nLabels"], file)
    if file is not None:
        page.save(file)
    return page
