"""``abstain report``: write the page in which a reader tries costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abstain._cli import options
from abstain._cli.output import Output, with_output
from abstain._core.losses import LOSSES
from abstain._utils.errors import InvalidProbabilities
from abstain._utils.wording import plural

if TYPE_CHECKING:
    from abstain.streams._read.sources import Paths


@click.command(short_help="Write a page in which to try costs and budgets.")
@options.inputs
@click.option(
    "--truth",
    type=options.table,
    help="Table of 0 and 1 with the same rows, and the same labels in any order: a file or a folder.",
)
@click.option(
    "-o",
    "--output",
    "output_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("abstain-report.html"),
    show_default=True,
    help="Where to write the page.",
)
@options.names(
    "--losses",
    default=("hamming", "f1"),
    help_text=f"Losses to choose from in the page: {', '.join(LOSSES)}.",
)
@click.option("--title", help="The title of the page.")
@click.option(
    "--texts",
    type=options.existing_file,
    help="A text for each row, in the same order: .txt (a line each), .csv or .parquet.",
)
@click.option("--text-column", metavar="NAME", help="Where the texts are in a CSV or Parquet file. [default: text]")
@click.option(
    "--images",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with a picture for each row, called as the row is (or 0.png, 1.png, …).",
)
@click.option(
    "--review",
    type=options.price,
    metavar="PRICE",
    help="What a review of one label costs. Without it there is no bill.",
)
@click.option(
    "--false-negative",
    type=options.price,
    metavar="PRICE",
    default=1.0,
    show_default=True,
    help="What a false negative costs: a relevant label answered no.",
)
@click.option(
    "--false-positive",
    type=options.price,
    metavar="PRICE",
    default=1.0,
    show_default=True,
    help="What a false positive costs: an irrelevant label answered yes.",
)
@click.option(
    "--max-entries",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="With more probabilities, the page shows rows drawn at random.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed with which rows are drawn."
)
@options.reading
@with_output
def report(
    inputs: Sequence[str],
    truth: str | None,
    output_file: Path,
    losses: Sequence[str],
    title: str | None,
    texts: Path | None,
    text_column: str | None,
    images: Path | None,
    review: float | None,
    false_negative: float,
    false_positive: float,
    max_entries: int,
    seed: int,
    reading: dict[str, Any],
    output: Output,
) -> None:
    """Write a page in which to try what asking may cost, and to see what is answered, asked and saved.

    INPUT is a table of probabilities as for abstain decide, wide or long, in one file or several, or standard input
    (-); it is read into memory. The names of rows and labels are shown. With the truth, the page also shows errors, and
    whether the probabilities are what they claim; --form and --format are about INPUT only. The page is one file, needs
    no network, and sends nothing.

    \b
    Examples:
      abstain report probabilities.parquet --truth labels.parquet -o report.html
      abstain report probabilities.csv --losses f1,jaccard --title "Films, March" --texts plots.csv
      abstain report probabilities.npz --truth labels.npz --review 0.4 --false-negative 12
      abstain report scores/ --truth truth.csv --id-column ticket --labels billing,refund
    """
    if truth == "-" and "-" in inputs:
        raise click.UsageError("standard input is one table, not two")
    if not output_file.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(output_file.parent)!r}", param_hint="--output")
    if output_file.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{output_file.name!r} does not end in .html", param_hint="--output")
    if text_column is not None and texts is None:
        raise click.BadParameter("there is no file of texts to look it up in (--texts)", param_hint="--text-column")
    from abstain._report import report as library
    from abstain._report.row_files import find_images, read_texts
    from abstain._utils.atomic import require_apart, require_writable
    from abstain.streams import open_aligned, read_aligned

    require_writable(output_file)
    require_apart([output_file], [Path(file) for file in (*inputs, truth, texts) if file not in (None, "-")])
    files: dict[str, Paths] = {"probabilities": inputs}
    files |= {} if truth is None else {"truth": truth}
    sources = open_aligned(files, **reading, options_for="probabilities")
    sources["probabilities"].require_labels()
    table, y_true = read_aligned(**sources)
    if len(table) == 0:
        raise InvalidProbabilities(f"{inputs[0]}: there are no rows, so there is nothing to report")
    found_images = None if images is None else find_images(images, table)
    page = library(
        table,
        y_true,
        path=output_file,
        losses=losses,
        title=title,
        texts=None if texts is None else read_texts(texts, table, text_column, reading["id_column"]),
        images=found_images,
        review=review,
        false_negative=false_negative,
        false_positive=false_positive,
        max_entries=max_entries,
        random_state=seed,
    )
    n, m = table.shape
    shown = page.n_instances
    sampled = f" ({plural(shown, 'row')} drawn at random)" if shown < n else ""
    size = output_file.stat().st_size / 1e6
    output.print_line(
        f"{plural(n, 'instance')} × {plural(m, 'label')}{sampled}, {size:.1f} MB: {output_file.resolve()}"
    )
    missing = 0 if found_images is None else found_images.count(None)
    if missing:
        output.note(f"{missing} of {plural(n, 'row')} {'has' if missing == 1 else 'have'} no picture in {images}")
    output.write_json(instances=n, labels=m, shown=shown, without_image=missing, page=str(output_file.resolve()))
