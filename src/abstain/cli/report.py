"""``abstain report``."""

from collections.abc import Sequence
from pathlib import Path

import click

from abstain.cli.options import existing_file, price
from abstain.cli.voice import Voice, plural, voiced


@click.command(short_help="Write a page in which to try costs and budgets.")
@click.argument("probabilities", type=existing_file)
@click.option("--truth", type=existing_file, help="Table of 0 and 1 with the same rows and labels.")
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
    type=existing_file,
    help="A text for each row, in the same order: .txt (a line each), .csv or .parquet.",
)
@click.option("--text-column", metavar="NAME", help="Where the texts are in a CSV or Parquet file. [default: text]")
@click.option(
    "--images",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with a picture for each row, called as the row is (or 0.png, 1.png, …).",
)
@click.option("--review", type=price, help="What a review of one label costs. Without it there is no bill.")
@click.option("--missed", type=price, default=1.0, show_default=True, help="What a missed label costs.")
@click.option("--wrong", type=price, default=1.0, show_default=True, help="What a wrongly given label costs.")
@click.option(
    "--max-entries",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="With more probabilities, the page shows rows drawn at random.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws the rows.")
@voiced
def report(
    probabilities: Path,
    truth: Path | None,
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
    voice: Voice,
) -> None:
    """Write a page in which to try what asking may cost, and to see what is answered, asked and saved.

    PROBABILITIES is a table of the label probabilities, .csv, .csv.gz, .parquet or .npz, a row for each instance and a
    column for each label; names of rows (a first column "id") and labels are shown. With the truth, the page also
    shows errors, and whether the probabilities are what they claim. The page is one file, needs no network, and sends
    nothing.

    \b
    Examples:
      abstain report probabilities.parquet --truth labels.parquet -o report.html
      abstain report probabilities.csv --losses f1,jaccard --title "Films, March" --texts plots.csv
      abstain report probabilities.npz --truth labels.npz --review 0.4 --missed 12 --wrong 1
    """
    if not output.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(output.parent)!r}", param_hint="--output")
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{output.name!r} does not end in .html", param_hint="--output")
    if text_column is not None and texts is None:
        raise click.BadParameter("there is no file of texts to look it up in (--texts)", param_hint="--text-column")
    from abstain import read_table
    from abstain.errors import InvalidLabels, InvalidProbabilities
    from abstain.reporting import report as library
    from abstain.reporting.companions import find_pictures, read_texts

    table = read_table(probabilities)
    pictures = None if images is None else find_pictures(images, table)
    try:
        library(
            table,
            None if truth is None else read_table(truth),
            path=output,
            losses=[name.strip() for part in losses for name in part.split(",") if name.strip()],
            title=title,
            texts=None if texts is None else read_texts(texts, table, text_column),
            images=pictures,
            review=review,
            false_negative=missed,
            false_positive=wrong,
            max_entries=max_entries,
            random_state=seed,
        )
    except InvalidProbabilities as reason:
        raise InvalidProbabilities(f"{probabilities}: {reason}") from reason
    except InvalidLabels as reason:
        raise InvalidLabels(f"{truth}: {reason}") from reason
    n, m = table.shape
    shown = max(1, max_entries // m)
    sampled = f" ({plural(shown, 'row')} drawn at random)" if shown < n else ""
    size = output.stat().st_size / 1e6
    voice.say(f"{plural(n, 'instance')} × {plural(m, 'label')}{sampled}, {size:.1f} MB: {output.resolve()}")
    missing = 0 if pictures is None else pictures.count(None)
    if missing:
        voice.remark(f"{missing} of {plural(n, 'row')} {'has' if missing == 1 else 'have'} no picture in {images}")
    voice.tell(instances=n, labels=m, shown=min(shown, n), without_picture=missing, page=str(output.resolve()))
