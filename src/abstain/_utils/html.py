"""Small tables and charts for notebooks, which take their colours from the page around them, light or dark."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

OPEN = "#f5b84155"  # behind what is left open; half transparent, so that text on it can be read in both schemes
LINE = "#3a8fc7"  # can be seen on white and on black
WIDTH, HEIGHT, MARGIN = 360, 190, 40  # of a chart, in pixels
POINTS = 400  # of a line, at most; more cannot be told apart


class Marked(NamedTuple):
    """A cell with a background that says what is left open, and words that appear when the mouse is over it."""

    text: str
    title: str


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str | Marked]], note: str = "") -> str:
    """A table, in whose rows the first cell names the row. All texts are taken as they are, none as markup.

    Examples
    --------
    >>> from abstain._utils.html import table
    >>> "a &lt; b</caption>" in table("a < b", ["label", "cost"], [["sky", "0.1"]])
    True
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{_named(row[0])}{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    above = f'<caption style="text-align:left;white-space:pre-line">{escape(caption)}</caption>'
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def chart(caption: str, x: ArrayLike, y: ArrayLike, titles: tuple[str, str], *, steps: bool = False) -> str:
    """A line, or steps that hold until the next point; where a value is nan, there is none.

    Examples
    --------
    >>> from abstain._utils.html import chart
    >>> "<polyline" in chart("loss", [0.0, 0.5, 1.0], [0.0, 0.1, 0.4], ("cost", "loss"))
    True
    """
    known = np.isfinite(x) & np.isfinite(y)
    at, values = np.asarray(x, np.float64)[known], np.asarray(y, np.float64)[known]
    if len(at) > POINTS:
        kept = np.unique(np.linspace(0, len(at) - 1, POINTS).astype(np.intp))
        at, values = at[kept], values[kept]
    if steps:
        at, values = np.repeat(at, 2)[1:], np.repeat(values, 2)[:-1]
    right, top = _end(at), _end(values)
    across = MARGIN + (WIDTH - 1.5 * MARGIN) * at / right
    down = HEIGHT - MARGIN - (HEIGHT - 1.5 * MARGIN) * values / top
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    left, bottom, end, up = MARGIN, HEIGHT - MARGIN, WIDTH - MARGIN / 2, MARGIN / 2
    return (
        f'<figure style="margin:0"><figcaption style="white-space:pre-line">{escape(caption)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(f"{titles[1]} against {titles[0]}")}" fill="currentColor" font-size="11">'
        f'<path d="M{left} {up}V{bottom}H{end}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="2"/>'
        f'<text x="{left}" y="{bottom + 14}" text-anchor="middle">0</text>'
        f'<text x="{end}" y="{bottom + 14}" text-anchor="end">{right:.3g}</text>'
        f'<text x="{(left + end) / 2}" y="{bottom + 30}" text-anchor="middle">{escape(titles[0])}</text>'
        f'<text x="{left - 5}" y="{bottom}" text-anchor="end">0</text>'
        f'<text x="{left - 5}" y="{up + 8}" text-anchor="end">{top:.3g}</text>'
        f'<text x="{left + 6}" y="{up - 6}">{escape(titles[1])}</text></svg></figure>'
    )


def _named(cell: str | Marked) -> str:
    text = cell.text if isinstance(cell, Marked) else cell
    return f'<th scope="row" style="text-align:left;white-space:nowrap">{escape(text)}</th>'


def _cell(cell: str | Marked) -> str:
    if isinstance(cell, Marked):
        style = f"white-space:nowrap;background:{OPEN}"
        return f'<td style="{style}" title="{escape(cell.title)}">{escape(cell.text)}</td>'
    return f'<td style="white-space:nowrap">{escape(cell)}</td>'


def _end(values: ArrayLike) -> float:
    """Where an axis from 0 ends."""
    largest = float(np.max(values, initial=0.0))
    return largest if largest > 0 else 1.0
