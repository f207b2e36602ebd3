"""How all commands speak: sentences or JSON, how far they are, what went wrong, and the exit code."""

import errno
import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import click

from abstain._utils.errors import DatasetWarning, FitFailed
from abstain._utils.wording import plural as plural

INTERRUPTED, CLOSED_PIPE = 130, 141  # and 128 + the number of a signal that asked to end
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

    @contextmanager
    def warnings_in_a_line(self) -> Iterator[None]:
        """What the library warns of is said without the line of code that Python shows with it."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", DatasetWarning)
            warnings.showwarning = lambda message, *_: self.remark(f"Warning: {message}")
            yield

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
        voice = Voice(quiet, as_json)
        with voice.warnings_in_a_line():
            command(*args, voice=voice, **options)

    return with_voice


class Commands(click.Group):
    """What a user can do something about is said in a line, not in a traceback."""

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
        self._before = {number: signal.signal(number, self._end) for number in known if not _is_under_nohup(number)}
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = self._complain

    def __exit__(self, *_: object) -> None:
        _Ending.asked = None
        sys.unraisablehook = self._hook_before
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, number: int, _: object) -> None:
        _Ending.asked = self.kinds[signal.Signals(number).name](128 + number)
        raise _Ending.asked

    def _complain(self, lost: "sys.UnraisableHookArgs") -> None:
        """What was asked for is kept, so nobody needs to hear that Python has lost it."""
        if lost.exc_value is not _Ending.asked:
            self._hook_before(lost)


def _is_under_nohup(number: int) -> bool:
    return number == getattr(signal, "SIGHUP", None) and signal.getsignal(number) is signal.SIG_IGN


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
