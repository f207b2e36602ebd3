"""``abstain datasets``: list, fetch, convert."""

from pathlib import Path
from typing import Any

import click

from abstain._cli.output import Output, with_output
from abstain._utils.wording import plural

ENDINGS = "parquet", "csv", "csv.gz", "arrow", "npz"
output_folder_option = click.option(
    "-o",
    "--output",
    "output_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the tables NAME-features and NAME-labels.",
)
ending_option = click.option(
    "--as",
    "ending",
    type=click.Choice(ENDINGS),
    help="The format of the tables. [default: npz for sparse features, else parquet]",
)


@click.group(short_help="Published multi-label data, as tables.")
def datasets() -> None:
    """Published multi-label data: what there is, and how to get it as tables.

    \b
    Examples:
      abstain datasets list
      abstain datasets fetch yeast -o tables
      abstain datasets convert my/music.arff -o tables --as csv
    """


@datasets.command("list")
@with_output
def list_(output: Output) -> None:
    """The data sets that can be fetched, with their sizes.

    \b
    Examples:
      abstain datasets list
      abstain datasets list --json | jq '.datasets[].name'
    """
    from abstain.datasets._registry import DATASETS

    output.print_line(f"{'name':20} {'instances':>10} {'features':>9} {'labels':>7} {'MB':>7}")
    for dataset in DATASETS.values():
        size = f"{dataset.n_instances:10} {dataset.n_features:9} {dataset.n_labels:7}"
        output.print_line(f"{dataset.name:20} {size} {sum(file.size or 0 for file in dataset.files) / 1e6:7.1f}")
    output.write_json(
        datasets=[
            {
                "name": dataset.name,
                "instances": dataset.n_instances,
                "features": dataset.n_features,
                "labels": dataset.n_labels,
                "urls": dataset.urls,
            }
            for dataset in DATASETS.values()
        ]
    )


@datasets.command()
@click.argument("names", nargs=-1, required=True)
@output_folder_option
@ending_option
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where downloaded files are kept. [default: the user's cache, or ABSTAIN_CACHE]",
)
@with_output
def fetch(
    names: tuple[str, ...], output_folder: Path | None, ending: str | None, folder: Path | None, output: Output
) -> None:
    """Download data sets from their public sites, once; with -o, write their features and labels as tables.

    \b
    Examples:
      abstain datasets fetch emotions yeast
      abstain datasets fetch yeast -o tables --as csv
    """
    from abstain import datasets as library

    found = []
    for name in names:
        bunch = library.fetch(name, folder=folder, progress=False if output.quiet else None)
        found.append(_write_tables(output, _plain_name(name), bunch, output_folder, ending))
    output.write_json(datasets=found)


@datasets.command()
@click.argument("arff", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--xml", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="MULAN's list of the labels.")
@click.option("--labels", "n_labels", type=int, help="The first N attributes are the labels; −N, the last ones.")
@output_folder_option
@ending_option
@with_output
def convert(
    arff: Path, xml: Path | None, n_labels: int | None, output_folder: Path | None, ending: str | None, output: Output
) -> None:
    """Read a MULAN or MEKA file, ARFF, and write its features and labels as tables.

    \b
    Examples:
      abstain datasets convert yeast.arff -o tables
      abstain datasets convert music.arff.gz --labels -6 -o tables --as csv
    """
    from abstain import datasets as library

    bunch = library.load_mulan(arff, xml=xml, labels=n_labels, progress=False if output.quiet else None)
    name = arff.name.partition(".")[0]
    output.write_json(**_write_tables(output, name, bunch, output_folder or Path(), ending, source=arff))


def _plain_name(name: str) -> str:
    return name.lower().replace("_", "-")


def _write_tables(
    output: Output, name: str, bunch: Any, folder: Path | None, ending: str | None, *, source: Path | None = None
) -> dict[str, Any]:
    """Write the tables of a data set, if there is a folder for them; print and return its size and files."""
    from scipy import sparse

    from abstain._utils.atomic import require_apart
    from abstain.streams._tables import Table, write_table

    (n, m), d = bunch.target.shape, bunch.data.shape[1]
    facts: dict[str, Any] = {"name": name, "instances": n, "features": d, "labels": m}
    output.print_line(f"{name}: {plural(n, 'instance')} × {plural(d, 'feature')} × {plural(m, 'label')}")
    if folder is None:
        return facts
    folder.mkdir(parents=True, exist_ok=True)
    kind = ending or ("npz" if sparse.issparse(bunch.data) else "parquet")
    for what, values, names in (
        ("features", bunch.data, bunch.feature_names),
        ("labels", bunch.target, bunch.target_names),
    ):
        file = folder / f"{name}-{what}.{kind}"
        require_apart([file], [] if source is None else [source])
        write_table(Table(values, tuple(names)), file)
        facts[f"{what}_file"] = str(file)
        output.print_line(f"  {file}")
    return facts
