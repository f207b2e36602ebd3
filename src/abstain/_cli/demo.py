"""``abstain demo``."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from abstain._cli.output import Output, with_output
from abstain._utils.atomic import require_writable


@click.command(short_help="Learn which digits are in pictures; see what silence buys.")
@click.option(
    "-o",
    "--output",
    "figure_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("abstain-demo.png"),
    show_default=True,
    help="Where to write the figure, .png, .pdf or .svg; the report is written beside it, as .html.",
)
@click.option("--train", type=click.IntRange(100), default=3000, show_default=True, help="Pictures to learn from.")
@click.option("--test", type=click.IntRange(50), default=2000, show_default=True, help="New pictures to be labelled.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 2),
    default=0,
    show_default=True,
    help="The seed with which pictures and noise are drawn.",
)
@with_output
def demo(figure_file: Path, train: int, test: int, seed: int, output: Output) -> None:
    """Learn which digits are in noisy pictures of two, and see what silence buys.

    Two of scikit-learn's handwritten digits stand side by side in each picture, overlapping a little and with noise.
    The labels are the digits present. A wrong label costs 1, a label left to a human costs c: the table shows, for each
    c, the average loss per picture of answering everything, of asking about everything, and of abstaining where it
    pays. Then come some pictures with what is answered and what is left open, and at last a report: a page for the
    browser in which costs, budgets and error rates can be tried. Nothing is downloaded.

    \b
    Examples:
      abstain demo
      abstain demo --output silence.pdf --seed 7
    """
    from abstain._cli import demo_example as example

    if figure_file.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise click.BadParameter(f"{figure_file.name!r} does not end in .png, .pdf or .svg", param_hint="--output")
    report_file = figure_file.with_suffix(".html")
    for file in (figure_file, report_file):
        require_writable(file)
    output.print_line(f"Learning from {train} pictures, looking at {test} others …\n")
    result = example.run(n_train=train, n_test=test, random_state=seed)
    outcomes = [result.outcome(cost) for cost in example.COSTS]
    output.print_line("        average loss per picture            labels      wrong among     errors")
    output.print_line("   c    answer all   ask all   abstain      left open   the answered    caught")
    for o in outcomes:
        output.print_line(
            f"{o.cost:5.2f}   {o.answer_all:9.3f}   {o.abstain_all:8.3f}   {o.abstain_optimally:7.3f}"
            f"   {o.abstention_rate:12.1%}   {o.answered_error_rate:12.2%}   {o.error_capture_rate:7.1%}"
        )
    output.print_line(f"\nSome pictures at c = {example.SHOWN_COST:g}; what is neither yes nor open is answered no:\n")
    output.print_line(" picture   yes     ask a human   truth")
    labels = result.decide(example.SHOWN_COST).labels
    for i in result.examples(example.SHOWN_COST, 8):
        yes, ask, there = example.describe(labels[i], result.truth[i])
        mistakes = example.mistakes(labels[i], result.truth[i])
        output.print_line(f"{i:8}   {yes:5}   {ask:11}   {there}{f'   ({mistakes})' if mistakes else ''}")
    output.print_line()
    figure = _write(output, "Figure", figure_file, lambda path: example.draw(result, outcomes, path))
    report = _write(output, "Report", report_file, lambda path: example.write_report(result, path))
    output.write_json(outcomes=[asdict(outcome) for outcome in outcomes], figure=figure, report=report)


def _write(output: Output, what: str, path: Path, write: Callable[[Path], None]) -> str | None:
    """Write a file and print where it is; without the package that it needs, print that instead."""
    try:
        write(path)
    except ImportError as reason:
        output.print_line(f"No {what.lower()}: {reason}")
        return None
    output.print_line(f"{what}: {path.resolve()}")
    return str(path.resolve())
