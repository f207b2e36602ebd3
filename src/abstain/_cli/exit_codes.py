"""The exit codes of the program, and how ``abstain --help`` explains them."""

INTERRUPTED = 130
CLOSED_PIPE = 141

EXIT_CODES_HELP = """\b
Exit codes:
  0    done
  1    an input or an output was refused, or the work failed; the last line says why
  2    wrong usage
  130  interrupted with Ctrl-C; nothing is half-written
  141  who was reading standard output has closed it
  143  asked to end (SIGTERM; 129 for SIGHUP); nothing is half-written"""


def of_signal(number: int) -> int:
    """Return the exit code of a process that a signal has ended, as shells have it."""
    return 128 + number
