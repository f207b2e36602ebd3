"""The command line: each command parses, makes a library call, and prints."""

import click

from abstain import __version__
from abstain.cli.demo import demo
from abstain.cli.experiment import experiment
from abstain.cli.report import report


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="abstain")
def main() -> None:
    """Multi-label classification that knows when to stay silent.

    Given any model's label probabilities, abstain answers the labels it is sure of and leaves the rest to a human:
    optimally for the loss you care about and for what an abstention costs you.

    \b
    First steps:
      abstain demo                     learn from pictures of digits, and see what silence buys
      abstain demo --help              what the demo can be told
      abstain report p.parquet         a page in which to try costs, budgets and error rates
      abstain experiment run --help    the papers' experiments, on your data or theirs
    """  # noqa: D301 (click wants a real \b, which keeps the lines as they are)


main.add_command(demo)
main.add_command(experiment)
main.add_command(report)
