"""``abstain report``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abstain._cli import options
from abstain._cli.output import Voice, plural, voiced
from abstain._utils.errors import InvalidProbabilities

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
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("abstain-report.html"),
    show_default=True,
    help="Where to write the page.",
)
@click.option(
    "--losses",
    multiple=True,
    default=("hamming,f1",),
    show_default=True,
    help="To choose from in the page: hamming, f1, jaccard, rank, subset.",
)
@click.option("--title", help="What the page is about.")
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
@click.option("--review", type=options.price, help="What a review of one label costs. Without it there is no bill.")
@click.option("--missed", type=options.price, default=1.0, show_default=True, help="What a missed label costs.")
@click.option("--wrong", type=options.price, default=1.0, show_default=True, help="What a wrongly given label costs.")
@click.option(
    "--max-entries",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="With more probabilities, the page shows rows drawn at random.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws the rows.")
@options.reading
@voiced
def report(
    inputs: Sequence[str],
    truth: str | None,
    output: Path,
    losses: Sequence[str],
    title: str | None,
    texts: Path | None,
    text_column: str | None,
    images: Path | None,
    review: float | None,
    missed: float,
    wrong: float,
    max_entries: int,
    seed: int,
    reading: dict[str, Any],
    voice: Voice,
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
      abstain report probabilities.npz --truth labels.npz --review 0.4 --missed 12 --wrong 1
      abstain report scores/ --truth truth.csv --id-column ticket --labels billing,refund
    """
    if truth == "-" and "-" in inputs:
        raise click.UsageError("standard input is one table, not two")
    if not output.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(output.parent)!r}", param_hint="--output")
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{output.name!r} does not end in .html", param_hint="--output")
    if text_column is not None and texts is None:
        raise click.BadParameter("there is no file of texts to look it up in (--texts)", param_hint="--text-column")
    from abstain._report import report as library
    from abstain._report.row_files import find_pictures, read_texts
    from abstain._utils.atomic import require_apart, require_writable
    from abstain.streams import open_aligned, read_aligned

    require_writable(output)
    require_apart([output], [Path(file) for file in (*inputs, truth, texts) if file not in (None, "-")])
    files: dict[str, Paths] = {"probabilities": inputs}
    files |= {} if truth is None else {"truth": truth}
    sources = open_aligned(files, **reading, options_for="probabilities")
    sources["probabilities"].require_labels()
    table, y_true = read_aligned(**sources)
    if len(table) == 0:
        raise InvalidProbabilities(f"{inputs[0]}: there are no rows, so there is nothing to report")
    pictures = None if images is None else find_pictures(images, table)
    page = library(
        table,
        y_true,
        path=output,
        losses=[name.strip() for part in losses for name in part.split(",") if name.strip()],
        title=title,
        texts=None if texts is None else read_texts(texts, table, text_column, reading["id_column"]),
        images=pictures,
        review=review,
        false_negative=missed,
        false_positive=wrong,
        max_entries=max_entries,
        random_state=seed,
    )
    n, m = table.shape
    shown = page.n_instances
    sampled = f" ({plural(shown, 'row')} drawn at random)" if shown < n else ""
    size = output.stat().st_size / 1e6
    voice.say(f"{plural(n, 'instance')} × {plural(m, 'label')}{sampled}, {size:.1f} MB: {output.resolve()}")
    missing = 0 if pictures is None else pictures.count(None)
    if missing:
        voice.remark(f"{missing} of {plural(n, 'row')} {'has' if missing == 1 else 'have'} no picture in {images}")
    voice.tell(instances=n, labels=m, shown=shown, without_picture=missing, page=str(output.resolve()))
