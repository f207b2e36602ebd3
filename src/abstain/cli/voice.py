"""How all commands speak: sentences or JSON, how far they are, what went wrong, and the exit code."""

import errno
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import click

from abstain.errors import FitFailed
from abstain.threads import STAGE
from abstain.wording import plural as plural

REFUSED, INTERRUPTED, CLOSED_PIPE = 1, 130, 141  # and 128 + the number of a signal that asked to end
EXIT_CODES = """\b
Exit codes:
  0    done
  1    an input or an output was refused, or the work failed; the last line says why
  2    wrong usage
  130  interrupted with Ctrl-C; nothing is half-written
  141  who was reading standard output has closed it
  143  asked to end (SIGTERM; 129 for SIGHUP); nothing is half-written"""


ASIDE = f"{__name__}.aside"  # what a context knows of how its command speaks
AS_JSON = f"{__name__}.as_json"


@dataclass(frozen=True)
class Voice:
    """Speaks to people in sentences, or to programs with one JSON object; --quiet leaves just errors."""

    quiet: bool = False
    as_json: bool = False

    def step_aside(self) -> None:
        """Speak on standard error from now on, since standard output carries data."""
        click.get_current_context().meta[ASIDE] = True

    @property
    def aside(self) -> bool:
        """Whether standard output carries data."""
        return bool(click.get_current_context().meta.get(ASIDE))

    def say(self, text: str = "") -> None:
        """A sentence, for people."""
        if not self.quiet and not self.as_json:
            click.echo(text, err=self.aside)

    def remark(self, text: str) -> None:
        """A sentence that is not the result, for people."""
        if not self.quiet:
            click.echo(text, err=True)

    def tell(self, **facts: Any) -> None:
        """The same, for programs."""
        if self.as_json:
            _echo_json(facts, self.aside)

    @contextmanager
    def progress(self, what: str) -> Iterator["Progress"]:
        """How far the work is, with rate and remaining time: on a terminal only."""
        bar = Progress(what, hidden=self.quiet or not sys.stderr.isatty())
        try:
            yield bar
        finally:
            bar.close()


class Progress:
    """A bar that counts rows."""

    def __init__(self, what: str, *, hidden: bool) -> None:
        self.what, self.hidden = what, hidden
        self._bar: Any = None

    def start(self, n_rows: int | None) -> None:
        """So many rows are to come, about; None if nobody knows."""
        if self.hidden:
            return
        from tqdm import tqdm

        self.close()
        self._bar = tqdm(desc=self.what, total=n_rows, unit=" rows", unit_scale=True, dynamic_ncols=True, leave=False)

    def advance(self, n_rows: int) -> None:
        """So many more rows are done; a moment to end if that was asked for."""
        if _Ending.asked is not None:
            raise _Ending.asked
        if self._bar is not None:
            self._bar.update(n_rows)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def voiced(command: Callable[..., None]) -> Callable[..., None]:
    """A command with --quiet and --json, which is called with a `voice`."""

    @click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors (and what --json asks for).")
    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        help='Print one JSON object instead of sentences, {"error": …} if something went wrong (to standard error '
        "if data go to standard output).",
    )
    @wraps(command)
    def with_voice(*args: Any, quiet: bool, as_json: bool, **options: Any) -> None:
        command(*args, voice=Voice(quiet, as_json), **options)

    return with_voice


class Commands(click.Group):
    """What a user can do something about is said in a line, not in a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        try:
            return super().main(*args, **kwargs)
        except SystemExit as end:
            if any(thread.name == STAGE for thread in threading.enumerate()):
                # It waits for input that nobody needs any more, and Python might stumble over it on its way out.
                with suppress(OSError):
                    sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code if isinstance(end.code, int) else REFUSED)
            raise

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look at the command line, of which something may be wrong before a command has read its options."""
        ctx.meta[AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what goes wrong is also told to programs, where they expect the result."""
        try:
            return self._run(ctx)
        except click.ClickException as reason:
            if ctx.meta[AS_JSON]:
                _echo_json({"error": reason.format_message()}, bool(ctx.meta.get(ASIDE)))
            raise

    def _run(self, ctx: click.Context) -> Any:
        try:
            with _Ending():
                return super().invoke(ctx)
        except BrokenPipeError:
            # What is still buffered goes nowhere, and at exit nobody complains of that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(CLOSED_PIPE) from None
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            raise SystemExit(INTERRUPTED) from None
        except OSError as reason:
            raise click.ClickException(_in_words(reason)) from reason
        except (ValueError, ImportError, FitFailed, MemoryError) as reason:
            raise click.ClickException(str(reason) or type(reason).__name__) from reason


class _Ending:
    """Who is asked to end tidies up first.

    What a signal raises is lost if it comes while Python calls back something that may not fail, so it is kept.
    """

    asked: ClassVar[BaseException | None] = None
    kinds: ClassVar[dict[str, type[BaseException]]] = {
        "SIGINT": KeyboardInterrupt,
        "SIGTERM": SystemExit,
        "SIGHUP": SystemExit,
    }

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        known = [getattr(signal, name) for name in self.kinds if is_main and hasattr(signal, name)]
        self._before = {number: signal.signal(number, self._end) for number in known}

    def __exit__(self, *_: object) -> None:
        _Ending.asked = None
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, number: int, _: object) -> None:
        _Ending.asked = self.kinds[signal.Signals(number).name](128 + number)
        raise _Ending.asked


def _in_words(reason: OSError) -> str:
    if reason.errno is None or reason.strerror is None:
        return str(reason)
    if not reason.filename:
        return reason.strerror
    hint = "; nothing was written" if reason.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) else ""
    return f"{reason.filename}: {reason.strerror}{hint}"


def _echo_json(facts: dict[str, Any], aside: bool) -> None:
    """One JSON object, on standard error if standard output carries data."""
    click.echo(json.dumps(_plain(facts), ensure_ascii=False), err=aside)


def _plain(value: Any) -> Any:
    """Numbers that JSON has: nan and inf are null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)
