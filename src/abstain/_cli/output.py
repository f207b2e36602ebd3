"""What commands print: sentences for people, or one JSON object for programs (``--json``), or nothing (``--quiet``)."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from abstain._cli.progress import Progress
from abstain._utils.errors import DatasetWarning, ProbabilityWarning

STDOUT_HAS_DATA = f"{__name__}.stdout_has_data"  # a key in the `meta` of click's context


@dataclass(frozen=True)
class Output:
    """Prints sentences, or one JSON object; with `quiet`, no sentences."""

    quiet: bool = False
    as_json: bool = False

    def use_stderr(self) -> None:
        """Print to standard error from now on, as standard output carries data."""
        click.get_current_context().meta[STDOUT_HAS_DATA] = True

    @property
    def is_on_stderr(self) -> bool:
        """Whether `print_line` and `write_json` print to standard error."""
        return bool(click.get_current_context().meta.get(STDOUT_HAS_DATA))

    def print_line(self, text: str = "") -> None:
        """Print a line of the result, for people."""
        if not self.quiet and not self.as_json:
            click.echo(text, err=self.is_on_stderr)

    def note(self, text: str) -> None:
        """Print a line that is not the result to standard error, for people."""
        if not self.quiet:
            click.echo(text, err=True)

    def write_json(self, **result: Any) -> None:
        """Print the result as one JSON object, for programs."""
        if self.as_json:
            echo_json(result, to_stderr=self.is_on_stderr)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """A context in which warnings of the library are notes, without the line of code that Python adds."""
        with warnings.catch_warnings():
            for category in (DatasetWarning, ProbabilityWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = lambda message, *_: self.note(f"Warning: {message}")
            yield

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress]:
        """A context with a progress bar, which is shown only on a terminal."""
        bar = Progress(title, hidden=self.quiet or not sys.stderr.isatty())
        try:
            yield bar
        finally:
            bar.close()


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Add --quiet and --json to a command, which is called with an `output`."""

    @click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors (and what --json asks for).")
    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        help='Print one JSON object instead of sentences, {"error": …} if something went wrong (to standard error '
        "if data go to standard output).",
    )
    @wraps(command)
    def decorated(*args: Any, quiet: bool, as_json: bool, **options: Any) -> None:
        output = Output(quiet, as_json)
        with output.warnings_as_notes():
            command(*args, output=output, **options)

    return decorated


def echo_json(result: dict[str, Any], *, to_stderr: bool) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(_plain(result), ensure_ascii=False), err=to_stderr)


def _plain(value: Any) -> Any:
    """Return a value that JSON has: nan and inf become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)
