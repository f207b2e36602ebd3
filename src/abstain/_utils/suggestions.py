"""Suggestions for misspelt names in error messages."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[str], *, normalize: Callable[[str], str] = str) -> str:
    """Return ``"; did you mean 'x'?"`` with the known name that is most similar, or "" if none is.

    Names are compared as `normalize` gives them.

    Examples
    --------
    >>> from abstain._utils.suggestions import did_you_mean
    >>> did_you_mean("yeats", ["emotions", "yeast"])
    "; did you mean 'yeast'?"
    >>> did_you_mean("YEATS", ["emotions", "Yeast"], normalize=str.lower)
    "; did you mean 'Yeast'?"
    """
    by_normalized = {normalize(each): each for each in known}
    close = get_close_matches(normalize(str(name)), by_normalized, n=1)
    return f"; did you mean {by_normalized[close[0]]!r}?" if close else ""
