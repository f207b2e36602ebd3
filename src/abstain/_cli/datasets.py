"""``abstain datasets``: list, fetch, convert."""

from pathlib import Path
from typing import Any

import click

from abstain._cli.output import Voice, plural, voiced

ENDINGS = "parquet", "csv", "csv.gz", "arrow", "npz"
to_folder = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the tables NAME-features and NAME-labels.",
)
as_kind = click.option(
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
@voiced
def list_(voice: Voice) -> None:
    """The data sets that can be fetched, with their sizes.

    \b
    Examples:
      abstain datasets list
      abstain datasets list --json | jq '.datasets[].name'
    """
    from abstain.datasets._registry import DATASETS

    voice.say(f"{'name':20} {'instances':>10} {'features':>9} {'labels':>7} {'MB':>7}")
    for dataset in DATASETS.values():
        size = f"{dataset.n_instances:10} {dataset.n_features:9} {dataset.n_labels:7}"
        voice.say(f"{dataset.name:20} {size} {sum(file.size or 0 for file in dataset.files) / 1e6:7.1f}")
    voice.tell(
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
@to_folder
@as_kind
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where downloaded files are kept. [default: the user's cache, or ABSTAIN_CACHE]",
)
@voiced
def fetch(names: tuple[str, ...], output: Path | None, ending: str | None, folder: Path | None, voice: Voice) -> None:
    """Fetch data sets from their public homes, once; with -o, write their features and labels as tables.

    \b
    Examples:
      abstain datasets fetch emotions yeast
      abstain datasets fetch yeast -o tables --as csv
    """
    from abstain import datasets as library

    found = []
    for name in names:
        bunch = library.fetch(name, folder=folder, progress=False if voice.quiet else None)
        found.append(_told(voice, _plain_name(name), bunch, output, ending))
    voice.tell(datasets=found)


@datasets.command()
@click.argument("arff", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--xml", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="MULAN's list of the labels.")
@click.option("--labels", "n_labels", type=int, help="The first N attributes are the labels; −N, the last ones.")
@to_folder
@as_kind
@voiced
def convert(
    arff: Path, xml: Path | None, n_labels: int | None, output: Path | None, ending: str | None, voice: Voice
) -> None:
    """Read a MULAN or MEKA file, ARFF, and write its features and labels as tables.

    \b
    Examples:
      abstain datasets convert yeast.arff -o tables
      abstain datasets convert music.arff.gz --labels -6 -o tables --as csv
    """
    from abstain import datasets as library

    bunch = library.load_mulan(arff, xml=xml, labels=n_labels, progress=False if voice.quiet else None)
    voice.tell(**_told(voice, arff.name.partition(".")[0], bunch, output or Path(), ending, arff))


def _plain_name(name: str) -> str:
    return name.lower().replace("_", "-")


def _told(
    voice: Voice, name: str, bunch: Any, output: Path | None, ending: str | None, *made_of: Path
) -> dict[str, Any]:
    """Write the tables of a data set, if there is a place for them, and say so."""
    from scipy import sparse

    from abstain._utils.atomic import require_apart
    from abstain.streams._tables import Table, write_table

    n, m = bunch.target.shape
    facts: dict[str, Any] = {"name": name, "instances": n, "features": bunch.data.shape[1], "labels": m}
    voice.say(f"{name}: {plural(n, 'instance')} × {plural(bunch.data.shape[1], 'feature')} × {plural(m, 'label')}")
    if output is None:
        return facts
    output.mkdir(parents=True, exist_ok=True)
    kind = ending or ("npz" if sparse.issparse(bunch.data) else "parquet")
    for what, values, names in (
        ("features", bunch.data, bunch.feature_names),
        ("labels", bunch.target, bunch.target_names),
    ):
        file = output / f"{name}-{what}.{kind}"
        require_apart([file], made_of)
        write_table(Table(values, tuple(names)), file)
        facts[f"{what}_file"] = str(file)
        voice.say(f"  {file}")
    return facts
