"""The page that a report is: its text, its file, and how a notebook shows it."""

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path

from abstain._utils.atomic import atomic_write
from abstain._utils.wording import plural

HEIGHT = 800  # pixels of the frame in a notebook
LARGEST_SHOWN = 10_000_000  # characters of a page that a notebook keeps: it would save them with every change


@dataclass(frozen=True, repr=False)
class Report:
    """One HTML page, made by `abstain.report`. A notebook shows it; if it was written to a file, where that is."""

    html: str
    """The page. ``str(report)`` gives it, too."""
    title: str
    n_instances: int
    """How many instances the page holds; of more, they were drawn at random."""
    n_labels: int
    path: Path | None = None
    """Where `abstain.report` has written it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
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
        if len(self.html) > LARGEST_SHOWN:
            return (
                f"<p>Report “{title}” of {self._size}: too large to be kept in a notebook. Write it to a file with "
                "<code>.save(path)</code>, or make it of fewer instances with <code>max_entries</code>.</p>"
            )
        # Without allow-same-origin the page, which shows what is in the data, cannot reach the notebook.
        return (
            f'<iframe title="{title}" srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-modals" '
            f'style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
        )

    @property
    def _size(self) -> str:
        shown = f"{plural(self.n_instances, 'instance')} × {plural(self.n_labels, 'label')}"
        return f"{shown} ({len(self.html.encode('utf-8')) / 1e6:.1f} MB)"
