"""Small HTML tables and charts for notebooks, with the text colours of the page around them, light or dark."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

HIGHLIGHT_COLOR = "#f5b84155"  # half transparent, so that text on it is readable on light and dark pages
LINE_COLOR = "#3a8fc7"  # visible on white and on black
CHART_WIDTH, CHART_HEIGHT, CHART_MARGIN = 360, 190, 40  # pixels
MAX_POINTS = 400  # of a line; more could not be seen apart


class HighlightedCell(NamedTuple):
    """A cell with a coloured background, and a title that appears when the mouse is over it."""

    text: str
    title: str


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str | HighlightedCell]], note: str = "") -> str:
    """Return a table whose first column names the rows. All texts are escaped.

    Examples
    --------
    >>> from abstain._utils.html import table
    >>> "a &lt; b</caption>" in table("a < b", ["label", "cost"], [["sky", "0.1"]])
    True
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{_row_head(row[0])}{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    above = f'<caption style="text-align:left;white-space:pre-line">{escape(caption)}</caption>'
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def chart(caption: str, x: ArrayLike, y: ArrayLike, titles: tuple[str, str], *, steps: bool = False) -> str:
    """Return a line chart, or a step chart in which a value holds until the next point; NaN values are left out.

    Examples
    --------
    >>> from abstain._utils.html import chart
    >>> "<polyline" in chart("loss", [0.0, 0.5, 1.0], [0.0, 0.1, 0.4], ("cost", "loss"))
    True
    """
    known = np.isfinite(x) & np.isfinite(y)
    at, values = np.asarray(x, np.float64)[known], np.asarray(y, np.float64)[known]
    if len(at) > MAX_POINTS:
        kept = np.unique(np.linspace(0, len(at) - 1, MAX_POINTS).astype(np.intp))
        at, values = at[kept], values[kept]
    if steps:
        at, values = np.repeat(at, 2)[1:], np.repeat(values, 2)[:-1]
    right, top = _end(at), _end(values)
    across = CHART_MARGIN + (CHART_WIDTH - 1.5 * CHART_MARGIN) * at / right
    down = CHART_HEIGHT - CHART_MARGIN - (CHART_HEIGHT - 1.5 * CHART_MARGIN) * values / top
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    left, bottom, end, up = CHART_MARGIN, CHART_HEIGHT - CHART_MARGIN, CHART_WIDTH - CHART_MARGIN / 2, CHART_MARGIN / 2
    return (
        f'<figure style="margin:0"><figcaption style="white-space:pre-line">{escape(caption)}</figcaption>'
        f'<svg viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" width="{CHART_WIDTH}" height="{CHART_HEIGHT}" role="img" '
        f'aria-label="{escape(f"{titles[1]} against {titles[0]}")}" fill="currentColor" font-size="11">'
        f'<path d="M{left} {up}V{bottom}H{end}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<polyline points="{points}" fill="none" stroke="{LINE_COLOR}" stroke-width="2"/>'
        f'<text x="{left}" y="{bottom + 14}" text-anchor="middle">0</text>'
        f'<text x="{end}" y="{bottom + 14}" text-anchor="end">{right:.3g}</text>'
        f'<text x="{(left + end) / 2}" y="{bottom + 30}" text-anchor="middle">{escape(titles[0])}</text>'
        f'<text x="{left - 5}" y="{bottom}" text-anchor="end">0</text>'
        f'<text x="{left - 5}" y="{up + 8}" text-anchor="end">{top:.3g}</text>'
        f'<text x="{left + 6}" y="{up - 6}">{escape(titles[1])}</text></svg></figure>'
    )


def _row_head(cell: str | HighlightedCell) -> str:
    text = cell.text if isinstance(cell, HighlightedCell) else cell
    return f'<th scope="row" style="text-align:left;white-space:nowrap">{escape(text)}</th>'


def _cell(cell: str | HighlightedCell) -> str:
    if isinstance(cell, HighlightedCell):
        style = f"white-space:nowrap;background:{HIGHLIGHT_COLOR}"
        return f'<td style="{style}" title="{escape(cell.title)}">{escape(cell.text)}</td>'
    return f'<td style="white-space:nowrap">{escape(cell)}</td>'


def _end(values: ArrayLike) -> float:
    """Return the end of an axis that begins at 0."""
    largest = float(np.max(values, initial=0.0))
    return largest if largest > 0 else 1.0
