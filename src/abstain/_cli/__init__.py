"""The command line: each command parses its options, makes a library call, and prints the result.

It may import everything, heavy modules only inside a command so that ``--help`` comes at once; only `__main__` imports
it. Start with `decide.py`, a typical command, then `options.py` (what commands share) and `output.py` (how they print).
"""

import click

from abstain import __version__
from abstain._cli.budget import budget
from abstain._cli.calibrate import calibrate
from abstain._cli.commands import CommandGroup
from abstain._cli.completion import completion
from abstain._cli.datasets import datasets
from abstain._cli.decide import decide
from abstain._cli.demo import demo
from abstain._cli.evaluate import evaluate
from abstain._cli.exit_codes import EXIT_CODES_HELP
from abstain._cli.experiment import experiment
from abstain._cli.report import report


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES_HELP,
)
@click.version_option(__version__, package_name="abstain")
def main() -> None:
    """Multi-label classification that knows when to stay silent.

    Given any model's label probabilities, abstain answers the labels it is sure of and leaves the rest to a human:
    optimally for the loss you care about and for what an abstention costs you.

    \b
    First steps:
      abstain demo                              see what silence buys
      abstain calibrate p.csv y.csv -o c.json   probabilities that are as often right as they say
      abstain decide p.csv -o q.csv             answer what is worth answering
      abstain budget p.csv --rate 0.05          the price, if 5 % can be reviewed
      abstain evaluate q.csv truth.csv          how good were the answers?
      abstain report p.csv                      a page to try costs and budgets in
      abstain COMMAND --help                    more, with examples
    """


for command in (budget, calibrate, completion, datasets, decide, demo, evaluate, experiment, report):
    main.add_command(command)
