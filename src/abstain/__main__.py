"""The command line as a program: ``abstain``, or ``python -m abstain``."""

import os
import sys

from abstain.cli import main
from abstain.cli.voice import CLOSED_PIPE


def program() -> None:
    """Run the command line, and end the process."""
    try:
        main(prog_name="abstain")
    except SystemExit as end:
        if end.code == CLOSED_PIPE:
            # What is still buffered goes nowhere, and at exit nobody complains of that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


if __name__ == "__main__":
    program()
