"""The `Report` that `abstain.report` returns: its HTML, its file, and how a notebook shows it."""

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from abstain._utils.atomic import atomic_write
from abstain._utils.wording import plural

FRAME_HEIGHT = 800  # pixels, in a notebook
MAX_CHARACTERS_IN_NOTEBOOK = 10_000_000  # a notebook saves the whole page with every change


@dataclass(frozen=True, repr=False)
class Report:
    """One HTML page, made by `abstain.report`. A notebook shows it, or a link to its file if it was written to one.

    Attributes
    ----------
    html : str
        The page; ``str(report)`` gives it, too.
    title : str
        The title of the page.
    n_instances : int
        The number of instances in the page. If there were more, these were drawn at random.
    n_labels : int
        The number of labels.
    path : Path or None
        Where `abstain.report` has written the page.
    """

    html: str
    title: str
    n_instances: int
    n_labels: int
    path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, which is replaced if it exists.
        """
        with atomic_write(Path(path)) as target:
            target.write(self.html.encode("utf-8"))

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        where = "not written to a file" if self.path is None else f"written to {str(self.path)!r}"
        return f"Report {self.title!r} of {self._size}, {where}"

    def _repr_html_(self) -> str:
        title = escape(self.title)
        if self.path is not None:
            link = f'<a href="{escape(self.path.as_posix())}" target="_blank">{escape(str(self.path))}</a>'
            return f"<p>Report “{title}” of {self._size}: {link}</p>"
        if len(self.html) > MAX_CHARACTERS_IN_NOTEBOOK:
            return (
                f"<p>Report “{title}” of {self._size}: too large to be kept in a notebook. Write it to a file with "
                "<code>.save(path)</code>, or make it of fewer instances with <code>max_entries</code>.</p>"
            )
        # Without allow-same-origin the page, which shows what is in the data, cannot reach the notebook.
        return (
            f'<iframe title="{title}" srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-modals" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
        )

    @property
    def _size(self) -> str:
        shown = f"{plural(self.n_instances, 'instance')} × {plural(self.n_labels, 'label')}"
        return f"{shown} ({len(self.html.encode('utf-8')) / 1e6:.1f} MB)"
