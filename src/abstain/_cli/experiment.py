"""``abstain experiment``: run, figures, verdict."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abstain._cli import options
from abstain._cli.exit_codes import INTERRUPTED
from abstain._cli.output import Output, with_output
from abstain._core.losses import LOSSES

if TYPE_CHECKING:
    from abstain.datasets._registry import File
    from abstain.experiment import Problem, Unfetched


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Say on an interrupt that the same command goes on from there."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. What is fitted is kept in {out}; the same command goes on from there.", err=True)
        raise SystemExit(INTERRUPTED) from None


@click.group(short_help="Run, draw and judge the papers' experiments.")
def experiment() -> None:
    """The papers' experiments, whole: run them, draw them, judge what they claim.

    \b
    Examples, with data sets that are downloaded once:
      abstain experiment run --out results
      abstain experiment figures results
      abstain experiment verdict results
    """


@experiment.command(cls=options.CommandWithLists)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the ARFF files, packed or not, each perhaps in a folder of its own. Without it, the published "
    "data sets are downloaded.",
)
@options.names(
    "--datasets",
    help_text="Names (cal500, emotions, scene, yeast, mediamill, nus-wide, …) or paths of MULAN or MEKA files. "
    "[default: cal500, emotions, scene, yeast]",
)
@options.names(
    "--learners",
    help_text="br-lr, cc-lr, ecc-lr, br-svm, cc-svm, …, trees, ncc or credal-forest; each also as, for example, "
    "br-lr+sigmoid (calibrated). [default: br-lr, cc-lr, ecc-lr]",
)
@options.names("--losses", help_text=f"{', '.join(LOSSES)}. [default: all]")
@click.option(
    "--folds",
    type=click.IntRange(2),
    default=10,
    show_default=True,
    help="The number of folds of the cross-validation.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="The seed with which folds are shuffled and chains are ordered.",
)
@click.option(
    "--jobs", type=click.IntRange(-1), default=-1, help="Folds fitted at once, each on one core. [default: all cores]"
)
@click.option("--cluster", metavar="ADDRESS", help="Fit on the Dask cluster of this scheduler, e.g. tcp://host:8786.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the results.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, downloads included, and do nothing.")
@with_output
def run(
    data: Path | None,
    datasets: Sequence[str],
    learners: Sequence[str],
    losses: Sequence[str],
    folds: int,
    seed: int,
    jobs: int,
    cluster: str | None,
    out: Path,
    dry_run: bool,
    output: Output,
) -> None:
    """Cross-validate learners on data sets, and decide for every loss, penalty and cost of the papers.

    Fitting takes long: the out-of-fold probabilities are kept in the folder of the results, and the same command goes
    on where it was interrupted. Deciding takes a minute. Then there are results.parquet and .csv (a row for each data
    set, learner, loss, penalty, cost and fold), coverage (risk–coverage curves), summary.csv (means and standard errors
    over the folds), aurc.csv (areas under those curves), timings.csv (seconds of one core that all folds took) and
    manifest.json (versions, seed, checksums).

    Missing numbers are filled with the median of the training folds; nominal features become columns of 0 and 1.

    \b
    Columns of the results:
      generalized_loss   average loss of the answers and penalty of the open labels
                         (Hamming in per cent of the labels, rank divided by their number)
      abstention         labels left open, per cent
      mlc, abs           generalised loss of answering everything, of leaving everything open
      two_thresholds, whole_instances, at_random
                         generalised loss of others who leave as many labels open

    \b
    Examples:
      abstain experiment run --dry-run
      abstain experiment run --data mulan/ --datasets emotions,yeast --learners br-lr,cc-lr
      abstain experiment run --datasets my/music.arff --losses f1 --folds 5 --out music
      abstain experiment run --cluster tcp://scheduler:8786    (its workers need abstain, too)
    """
    if jobs == 0:
        raise click.BadParameter("0 is no number of folds to fit at once; −1 stands for all cores", param_hint="--jobs")
    with _resumable(out):
        from abstain import experiment as library
        from abstain.experiment import _plan as plans, _protocol

        learners, losses = learners or _protocol.LEARNERS, losses or _protocol.LOSSES
        plans.require_known(learners, losses)  # before data are read, or even downloaded
        names = datasets or _protocol.DATASETS
        if dry_run:
            problems = [library.look_up(name, folder=data) for name in names]
            plans.require_feasible(problems, folds)
            pairs = [_pair_facts(problem, learner, folds, seed, out) for problem in problems for learner in learners]
            unfetched = [problem for problem in problems if isinstance(problem, library.Unfetched)]
            _print_plan(pairs, losses, [file for problem in unfetched for file in problem.files], out, output)
            return
        plan = library.Plan(
            [library.load(name, folder=data) for name in names],
            learners=learners,
            losses=losses,
            n_folds=folds,
            random_state=seed,
        )
        manifest = out / "manifest.json"
        before = manifest.read_text() if manifest.is_file() else None
        results = library.run(plan, out=out, n_jobs=jobs, cluster=cluster, progress=False if output.quiet else None)
        if before not in (None, manifest.read_text()):
            output.note(f"The results of other settings in {out} were replaced; their probabilities are still there.")
    files = [str(out / f"results.{ending}") for ending in ("parquet", "csv")]
    output.print_line(f"{len(results.results)} rows: {', '.join(files)}")
    output.write_json(rows=len(results.results), results=files)


def _pair_facts(problem: "Problem | Unfetched", learner: str, n_folds: int, seed: int, out: Path) -> dict[str, Any]:
    """Return what fitting a learner to a data set takes; folds_kept is None if the data are not here."""
    from abstain.experiment import Unfetched, _models
    from abstain.experiment._plan import Fold
    from abstain.experiment._store import Store

    kept = None
    if not isinstance(problem, Unfetched):
        store = Store(out / "probabilities")
        kept = sum(store.read(Fold(problem, learner, k, n_folds, seed)) is not None for k in range(n_folds))
    fits = n_folds * _models.n_fits(learner, problem.shape[2])
    return {"dataset": problem.name, "shape": problem.shape, "learner": learner, "fits": fits,
            "folds": n_folds, "folds_kept": kept}  # fmt: skip


def _print_plan(
    pairs: list[dict[str, Any]], losses: Sequence[str], files: "Sequence[File]", out: Path, output: Output
) -> None:
    from abstain.experiment._protocol import N_COSTS, PENALTIES

    output.print_line(f"{'data set':20} {'instances × features × labels':>30}  {'learner':16} {'fits':>9}  folds kept")
    for pair in pairs:
        shape = " × ".join(map(str, pair["shape"]))
        kept = "unknown" if pair["folds_kept"] is None else f"{pair['folds_kept']} of {pair['folds']}"
        output.print_line(f"{pair['dataset']:20} {shape:>30}  {pair['learner']:16} {pair['fits']:9}  {kept}")
    fits, n_folds = (sum(pair[key] for pair in pairs) for key in ("fits", "folds"))
    missing = n_folds - sum(pair["folds_kept"] or 0 for pair in pairs)
    n_rows = n_folds * len(losses) * len(PENALTIES) * N_COSTS
    output.print_line(f"\n{fits} fits; {missing} of {n_folds} folds are still to be fitted.")
    output.print_line(f"Losses: {', '.join(losses)}; for each {len(PENALTIES)} penalties of {N_COSTS} costs.")
    output.print_line(f"{n_rows} rows of results in {out}.")
    if files:
        known = sum(file.size or 0 for file in files) / 1e6
        output.print_line(f"To be downloaded first, {known:.1f} MB: {', '.join(file.name for file in files)}.")
    output.write_json(plan=pairs, fits=fits, folds_missing=missing, losses=losses, rows=n_rows, out=str(out),
               downloads=[{"file": file.name, "bytes": file.size, "urls": file.urls} for file in files])  # fmt: skip


result_folders = click.argument(
    "results", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)


@experiment.command()
@result_folders
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the figures. [default: figures, in the first folder of results]",
)
@with_output
def figures(results: tuple[Path, ...], out: Path | None, output: Output) -> None:
    """Draw the papers' figures, as PDF and PNG, from the RESULTS folders of one run or of several.

    For each loss and learner: a column for each data set, the generalised loss above, the labels left open below. And
    for each learner the comparison with related work at equal abstention.

    \b
    Examples:
      abstain experiment figures results
      abstain experiment figures results music -o figures
    """
    from abstain.experiment import Results
    from abstain.experiment._figures import draw

    drawn = [str(path) for path in draw(Results.read(results), out or results[0] / "figures")]
    output.print_line("\n".join(drawn))
    output.write_json(figures=drawn)


@experiment.command()
@result_folders
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@with_output
def verdict(results: tuple[Path, ...], markdown: bool, output: Output) -> None:
    """Check the papers' claims, one by one, in the RESULTS folders of one run or of several.

    Prints each claim, whether it holds (yes; mostly, in 95 % of the cases; no), and the numbers behind it, learner by
    learner.

    \b
    Examples:
      abstain experiment verdict results
      abstain experiment verdict results --markdown > verdict.md
    """
    from abstain.experiment import Results
    from abstain.experiment._claims import as_markdown, as_text, check

    claims = check(Results.read(results))
    output.print_line(as_markdown(claims) if markdown else as_text(claims))
    output.write_json(claims=[asdict(claim) for claim in claims])
