"""The program: ``abstain`` and ``python -m abstain``."""

import os
import signal
import sys


def _end(number: int, _: object) -> None:
    """End the process at once: no command has begun, so nothing has to be tidied up."""
    if number == signal.SIGINT:
        os.write(2, b"\nInterrupted.\n")
    os._exit(128 + number)


def program() -> None:
    """Run the command line, and end the process.

    Its imports take most of a second. During them an interrupt as an exception would print a traceback, or be dropped
    inside a callback, so it ends the process instead. Commands set their own handlers.
    """
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)

    from abstain._cli import main
    from abstain._cli.exit_codes import CLOSED_PIPE

    try:
        main(prog_name="abstain")
    except SystemExit as end:
        if end.code == CLOSED_PIPE:
            # Python flushes standard output at exit, which would fail and print a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


if __name__ == "__main__":
    program()
