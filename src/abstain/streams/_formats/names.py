"""What rows and columns are called in a file."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from abstain._utils.errors import InvalidDataset, quoted

INDEX_NAMES = "id", "index", "", "__index_level_0__"
"""A first column of this name holds the names of the rows: what we write, and what pandas does."""


def counts(names: Any) -> bool:
    """Whether names are just 0, 1, 2 …"""
    return list(names) == list(range(len(names)))


def labels_called(names: Sequence[str]) -> tuple[str, ...] | None:
    """What columns tell of their labels: nothing if they are called 0, 1, 2 …, for columns must be called something."""
    return None if list(names) == [str(j) for j in range(len(names))] else tuple(names)


def rows_called(names: Any, asked: bool) -> Any:
    """What a column tells of its rows: nothing if it just counts and was not asked for."""
    return None if names is None or (not asked and counts(names)) else names


def require_different(names: Sequence[str]) -> None:
    """Raise `InvalidDataset` if two columns have the same name."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidDataset(f"two columns are called {quoted(twice)}")


def positions(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where the wanted columns are."""
    at = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in at:
            alike = {other.lower(): other for other in names}
            close = [alike[other] for other in get_close_matches(str(name).lower(), alike, n=1)]
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            there = f"; there are {', '.join(map(quoted, names[:8]))}{more}"
            hint = f"; did you mean {quoted(close[0])}?" if close else there
            if any("," in other and str(name) in other for other in names):
                hint += " (names with commas are listed in a file, one on each line: --labels @FILE)"
            raise InvalidDataset(f"there is no column {quoted(name)}{hint}")
    return [at[name] for name in wanted]
