"""Signals that end a command: they become exceptions, so that it can tidy up first."""

import signal
import sys
import threading
from typing import ClassVar

from abstain._cli import exit_codes


class EndOnSignal:
    """A context in which SIGINT, SIGTERM and SIGHUP raise an exception.

    Python drops an exception that a signal raises inside a callback that may not fail. So it is stored, and
    `raise_pending` raises it again at a safe place.
    """

    pending: ClassVar[BaseException | None] = None
    exceptions: ClassVar[dict[str, type[BaseException]]] = {
        "SIGINT": KeyboardInterrupt,
        "SIGTERM": SystemExit,
        "SIGHUP": SystemExit,
    }

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        numbers = [getattr(signal, name) for name in self.exceptions if is_main and hasattr(signal, name)]
        handled = [number for number in numbers if not _is_under_nohup(number)]
        self._handlers_before = {number: signal.signal(number, self._handle) for number in handled}
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = self._report_unraisable

    def __exit__(self, *_: object) -> None:
        EndOnSignal.pending = None
        sys.unraisablehook = self._hook_before
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: object) -> None:
        EndOnSignal.pending = self.exceptions[signal.Signals(number).name](exit_codes.of_signal(number))
        raise EndOnSignal.pending

    def _report_unraisable(self, dropped: "sys.UnraisableHookArgs") -> None:
        """Print exceptions that Python has dropped, except the one that is stored."""
        if dropped.exc_value is not EndOnSignal.pending:
            self._hook_before(dropped)


def raise_pending() -> None:
    """Raise the exception of a signal that has arrived, in case Python has dropped it."""
    if EndOnSignal.pending is not None:
        raise EndOnSignal.pending


def _is_under_nohup(number: int) -> bool:
    return number == getattr(signal, "SIGHUP", None) and signal.getsignal(number) is signal.SIG_IGN
