"""The program: ``abstain`` and ``python -m abstain``."""

import os
import signal
import sys


def _end(number: int, _: object) -> None:
    """End at once. Nothing has been begun yet that would have to be tidied up."""
    if number == signal.SIGINT:
        os.write(2, b"\nInterrupted.\n")
    os._exit(128 + number)


def program() -> None:
    """Run the command line, and end the process.

    Its imports take most of a second. An interrupt that came as an exception would end them in a traceback, or be lost
    where Python calls back something that may not fail. A command sets its own handlers.
    """
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)

    from abstain._cli import main
    from abstain._cli.output import CLOSED_PIPE

    try:
        main(prog_name="abstain")
    except SystemExit as end:
        if end.code == CLOSED_PIPE:
            # What is still buffered goes nowhere, and at exit nobody complains of that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


if __name__ == "__main__":
    program()
