"""``abstain budget``: spend a limited number of reviews over files."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import click

from abstain._cli import options
from abstain._cli.output import Output, with_output
from abstain._core.losses import Loss
from abstain._utils.errors import InvalidDataset
from abstain._utils.wording import plural
from abstain.streams._write.destinations import is_folder


@click.command(short_help="Spend a budget of reviews where they save most.")
@options.inputs
@click.option("--rate", type=options.share, help="The share of all labels that can be reviewed.")
@click.option("--count", type=click.IntRange(0), help="The number of labels that can be reviewed.")
@click.option("--per-instance", type=click.IntRange(0), help="How many labels of a row can be reviewed at most.")
@click.option(
    "--per-label",
    type=options.read_number_or_file,
    metavar="N|FILE",
    help="How many rows can be reviewed for a label at most: a number, or a file (label,limit). Hamming only; reads "
    "the whole table into memory.",
)
@click.option(
    "--review",
    type=options.read_number_or_file,
    metavar="COST|FILE",
    default="0",
    help="What a review costs, in the unit of the loss: a number, or a file (label,cost; Hamming only).",
)
@options.loss
@options.output
@options.queue
@options.reading
@options.kind
@with_output
def budget(
    inputs: Sequence[str],
    rate: float | None,
    count: int | None,
    per_instance: int | None,
    per_label: float | Path | None,
    review: float | Path,
    loss: Loss,
    output_file: str | None,
    queue: str | None,
    reading: dict[str, Any],
    kind: Any,
    output: Output,
) -> None:
    """Spend a budget of reviews where they save most, over all rows of any number of files.

    The first pass over the INPUT (as for abstain decide) finds the price: what a review must save to be made, the cost
    c of the linear penalty. With -o a second pass decides, and the budget is used up; of reviews that save just the
    price, the first ones are made. Without -o only the price and the bill are printed; abstain decide --penalty PRICE
    then keeps to the budget on average, on new data too.

    \b
    Examples:
      abstain budget p.parquet --rate 0.05
      abstain budget p.csv --count 500 --per-instance 3 -o q.csv --queue review.csv
      abstain budget p.csv --loss hamming:false_negative=12,false_positive=1 --review 0.40 -o q.csv
      abstain budget p.csv --per-label experts.csv --count 500 -o q.csv
    """
    if rate is not None and count is not None:
        raise click.UsageError("give --rate or --count, not both")
    if rate is None and count is None and per_instance is None and per_label is None and review == 0:
        raise click.UsageError("what limits the reviews? Give --rate, --count, --per-instance, --per-label or --review")
    if queue and output_file is None:
        raise click.BadParameter("a queue belongs to answers; say where to write these, too (-o)", param_hint="--queue")
    if output_file is not None and is_folder(output_file):
        raise click.BadParameter("a budget is spent over all inputs, into one file", param_hint="--output")
    if output_file == "-":
        output.use_stderr()
    options.require_unread([output_file, queue], per_label, review)
    from abstain.streams import budget_files, open_sources

    sources = open_sources(inputs, **reading, kind=kind, passes=2)
    names, m = sources.label_names, sources.n_labels
    with output.progress("budget") as progress:
        found = budget_files(
            sources,
            loss=loss,
            rate=rate,
            count=count,
            per_instance=per_instance,
            per_label=options.by_label(per_label, names, m, absent=inf) if isinstance(per_label, Path) else per_label,
            review=options.by_label(review, names, m) if isinstance(review, Path) else review,
            output=output_file,
            queue=queue,
            progress=progress,
        )
    allowed = "" if found.budget is None else f" of {found.budget}"
    size = f"{plural(found.n_rows, 'row')} × {plural(m, 'label')}"
    by_label = None if found.price.label_costs is None else found.price.label_costs.tolist()
    besides = "" if by_label is None else ", and for each label besides what --json shows"
    if found.price.max_abstained is not None:
        besides += f", with at most {plural(found.price.max_abstained, 'review')} of a row"
    if found.n_rows == 0 and output_file is None:
        raise InvalidDataset(f"{', '.join(sources.files)}: there are no rows, and so no price of a review")
    output.print_line(f"{found.count}{allowed} reviews of {size}")
    if found.n_rows:
        output.print_line(f"price of a review: {found.price.cost:.6g}{besides}")
    total = f"{found.bill.total:.6g} = {found.bill.errors:.6g} for errors + {found.bill.reviews:.6g} for reviews"
    output.print_line(f"expected bill: {total if found.bill.reviews else f'{found.bill.errors:.6g} for errors'}")
    if found.gap:
        output.print_line(f"at most {found.gap:.3g} from the optimum")
    for what, file in (("answers", output_file), ("queue", queue)):
        if file not in (None, "-"):
            output.print_line(f"{what}: {file}")
    output.write_json(
        rows=found.n_rows,
        labels=m,
        budget=found.budget,
        reviews=found.count,
        price=found.price.cost if found.n_rows else None,
        price_by_label=None if by_label is None else dict(zip(names or range(m), by_label, strict=True)),
        bill={"total": found.bill.total, "errors": found.bill.errors, "reviews": found.bill.reviews},
        gap=found.gap,
        loss=repr(loss),
        output=output_file,
        queue=queue,
    )
