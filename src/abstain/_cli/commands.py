"""The group of all commands: errors that a user can do something about are one line, not a traceback."""

import errno
from typing import Any

import click

from abstain._cli import exit_codes
from abstain._cli.output import STDOUT_HAS_DATA, echo_json
from abstain._cli.signals import EndOnSignal
from abstain._utils.errors import FitFailed

AS_JSON = f"{__name__}.as_json"  # a key in the `meta` of click's context


class CommandGroup(click.Group):
    """A group that turns errors into one line, also as JSON with ``--json``, and signals into exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for --json first: errors may occur before a command has parsed its options."""
        ctx.meta[AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. With --json, errors are printed as JSON where the result would be."""
        try:
            return self._run(ctx)
        except click.ClickException as reason:
            if ctx.meta[AS_JSON]:
                echo_json({"error": reason.format_message()}, to_stderr=bool(ctx.meta.get(STDOUT_HAS_DATA)))
            raise

    def _run(self, ctx: click.Context) -> Any:
        try:
            with EndOnSignal():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise SystemExit(exit_codes.CLOSED_PIPE) from None
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            raise SystemExit(exit_codes.INTERRUPTED) from None
        except OSError as reason:
            raise click.ClickException(_message_of(reason)) from reason
        except (ValueError, ImportError, FitFailed, MemoryError) as reason:
            raise click.ClickException(str(reason) or type(reason).__name__) from reason


def _message_of(reason: OSError) -> str:
    if reason.errno is None or reason.strerror is None:
        return str(reason)
    if not reason.filename:
        return reason.strerror
    hint = "; nothing was written" if reason.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) else ""
    return f"{reason.filename}: {reason.strerror}{hint}"
