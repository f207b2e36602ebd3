"""``python -m abstain`` is the command line."""

from abstain.cli import main

main(prog_name="abstain")
