"""How the command line speaks of mistakes."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from abstain.errors import FitFailed


@contextmanager
def explained() -> Iterator[None]:
    """What a user can do something about is said in a line, not in a traceback."""
    try:
        yield
    except (ValueError, ImportError, OSError, FitFailed) as reason:
        raise click.ClickException(str(reason)) from reason
