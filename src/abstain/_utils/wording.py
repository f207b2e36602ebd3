"""Nouns with numbers."""


def plural(count: int, word: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> from abstain._utils.wording import plural
    >>> plural(1, "row"), plural(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"
