"""``abstain evaluate``: score partial predictions in files."""

from pathlib import Path
from typing import Any

import click

from abstain._cli import options
from abstain._cli.output import Output, with_output
from abstain._core.losses import Loss
from abstain._core.penalties import Penalty
from abstain._utils.errors import InvalidDataset
from abstain._utils.wording import plural


@click.command(short_help="Score partial predictions against the truth.")
@click.argument("prediction", type=options.table)
@click.argument("truth", type=options.table)
@options.loss
@options.penalty
@click.option(
    "--probabilities", type=options.table, help="What the answers were decided on: to see what was to be expected."
)
@options.reading
@with_output
def evaluate(
    prediction: str,
    truth: str,
    loss: Loss,
    penalty: Penalty | Path,
    probabilities: str | None,
    reading: dict[str, Any],
    output: Output,
) -> None:
    """Score partial predictions against the truth, row beside row, whatever their size.

    PREDICTION has 1, 0, and an empty cell (or −1) for a label left open, as abstain decide writes it; TRUTH has 1 and
    0. Both are files of any kind that abstain decide reads, or folders of them. Long ones have the columns id, label,
    and answer, relevant or probability; a table with more columns is long if it has those that --label-column or
    --value-column name. As long tables list no empty rows, a wide table or --probabilities must name all. Rows are in
    the same order; where both have ids, these must agree. Labels are matched by name.

    \b
    Examples:
      abstain evaluate q.parquet truth.parquet --penalty 0.1
      abstain evaluate q.csv truth.csv --loss f1 --probabilities p.csv
      abstain evaluate partial/ truth/ --json | jq .answered_error_rate
    """
    if [prediction, truth, probabilities].count("-") > 1:
        raise click.UsageError("standard input is one table, not two")
    from abstain.streams import evaluate_files, open_aligned

    files = {"prediction": prediction, "truth": truth}
    files |= {} if probabilities is None else {"probabilities": probabilities}
    sides = open_aligned(files, **reading)
    answers = sides["prediction"]
    resolved = options.penalty_of(penalty, answers.label_names, answers.n_labels)
    with output.progress("evaluate") as progress:
        scores = evaluate_files(
            sides["truth"],
            answers,
            loss=loss,
            penalty=resolved,
            probabilities=sides.get("probabilities"),
            progress=progress,
        )
    n, m = scores.n_rows, scores.n_labels
    if n == 0:
        raise InvalidDataset(f"{', '.join(answers.files)}: there are no rows, and so nothing to score")
    output.print_line(f"{plural(n, 'row')} × {plural(m, 'label')}, {scores.abstention_rate:.2%} left open")
    if scores.n_wrong is not None:
        output.print_line(f"wrong among the answers: {scores.answered_error_rate:.2%} ({scores.n_wrong})")
    expected = "" if scores.total_expected_loss is None else f" (expected: {scores.total_expected_loss / n:.4g})"
    output.print_line(f"generalised loss ({options.in_words(loss, penalty)}): {scores.loss:.4g} per row{expected}")
    if scores.n_errors is not None:
        would = f"{scores.n_caught} of {scores.n_errors} that the complete prediction would have made"
        output.print_line(f"errors caught by silence: {scores.error_capture_rate:.2%} ({would})")
    output.write_json(
        rows=n,
        labels=m,
        abstained=scores.n_abstained,
        abstention_rate=scores.abstention_rate,
        wrong=scores.n_wrong,
        answered_error_rate=None if scores.n_wrong is None else scores.answered_error_rate,
        loss=repr(loss),
        penalty=str(penalty),
        generalized_loss=scores.loss,
        expected_loss=None if scores.total_expected_loss is None else scores.total_expected_loss / n,
        errors_caught=scores.n_caught,
        error_capture_rate=None if scores.n_errors is None else scores.error_capture_rate,
    )
