"""The names of rows and columns in a file."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from abstain._utils.errors import InvalidDataset, quoted

INDEX_NAMES = "id", "index", "", "__index_level_0__"
"""A first column of this name holds the names of the rows: the library writes the first, pandas the others."""


NO_COLUMN, CLOSE = "there is no column", "; did you mean "
"""How an error about a missing column begins, and its hint at a close one."""


def is_default_index(names: Any) -> bool:
    """Whether names are just 0, 1, 2 …"""
    return list(names) == list(range(len(names)))


def label_names_from(columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of columns as names of labels; None if they are 0, 1, 2 …, since columns must have names."""
    return None if list(columns) == [str(j) for j in range(len(columns))] else tuple(columns)


def row_names_from(column: Any, *, is_requested: bool) -> Any:
    """Return the entries of a column as names of rows; None if they just count and were not requested."""
    return None if column is None or (not is_requested and is_default_index(column)) else column


def find_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurs for a second time, if there is one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def require_unique(names: Sequence[str]) -> None:
    """Raise `InvalidDataset` if two columns have the same name."""
    if (duplicate := find_duplicate(names)) is not None:
        raise InvalidDataset(f"two columns are called {quoted(duplicate)}")


def positions(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where the wanted columns are, or raise `InvalidDataset`."""
    at = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in at:
            alike = {other.lower(): other for other in names}
            close = [alike[other] for other in get_close_matches(str(name).lower(), alike, n=1)]
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            there = f"; there are {', '.join(map(quoted, names[:8]))}{more}"
            hint = f"{CLOSE}{quoted(close[0])}?" if close else there
            if any("," in other and str(name) in other for other in names):
                hint += " (names with commas are listed in a file, one on each line: --labels @FILE)"
            raise InvalidDataset(f"{NO_COLUMN} {quoted(name)}{hint}")
    return [at[name] for name in wanted]
