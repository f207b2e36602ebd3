"""``abstain decide``: answer tables of probabilities in files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from abstain._cli import options
from abstain._cli.output import Output, with_output
from abstain._core.intervals import IntervalRule
from abstain._core.losses import Loss
from abstain._core.penalties import Linear, Penalty
from abstain._utils.errors import InvalidProbabilities, NoProbabilities
from abstain._utils.wording import plural
from abstain.streams._write.destinations import is_folder

if TYPE_CHECKING:
    from abstain.streams import Summary


@click.command(short_help="Answer what is worth answering, in files of any size.")
@options.inputs
@options.output
@options.loss
@options.penalty
@options.queue
@options.reading
@options.kind
@click.option(
    "--intervals",
    is_flag=True,
    help="INPUT holds intervals of probabilities: columns <label>_lower and <label>_upper for each label.",
)
@click.option(
    "--upper",
    metavar="FILE",
    type=options.table,
    help="INPUT holds the lower ends of intervals, and FILE (- is standard input) the upper ones, with the same labels "
    "in any order.",
)
@click.option(
    "--rule",
    type=click.Choice(get_args(IntervalRule)),
    help="How answers are judged if there are intervals: by their worst case, only what is best for every probability, "
    "or by a weighted mean of best and worst case (--optimism). [default: minimax]",
)
@click.option(
    "--optimism", type=options.share, metavar="SHARE", help="With --rule hurwicz: the weight of the best case, 0 to 1."
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip", "abstain"]),
    default="fail",
    show_default=True,
    help="What to do where something is no probability: stop, leave out the row, or leave the label open.",
)
@click.option(
    "--resume", is_flag=True, help="With a folder as output, keep the files that are already there and right."
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Decide on the Dask cluster of this scheduler, e.g. tcp://host:8786."
)
@with_output
@options.with_endings
def decide(
    inputs: Sequence[str],
    output_file: str | None,
    loss: Loss,
    penalty: Penalty | Path,
    queue: str | None,
    reading: dict[str, Any],
    kind: Any,
    intervals: bool,
    upper: str | None,
    rule: IntervalRule | None,
    optimism: float | None,
    on_error: Any,
    resume: bool,
    cluster: str | None,
    output: Output,
) -> None:
    """Answer the labels worth answering, and leave the others open: optimally, for the loss and the penalty.

    INPUT is a table of probabilities, or several with the same labels, or a folder of them, of any size: {endings}
    (npz dense, or scipy's sparse); - is standard input, and pipes are read, too (CSV or an Arrow stream). Either it
    is wide, a row for each instance and a column for each label; or long, with the columns id, label and probability
    (or what --id-column, --label-column and --value-column say), where what is not listed has probability 0.

    The output has 1, 0 and empty cells (open labels), or positions for the rank loss; ids are kept. For sparse input it
    is long: id, label and answer, where what is not listed is answered 0. A file appears when it is complete. Without
    -o, the answers go to standard output unless that is a terminal: as CSV, or as an Arrow stream if the input is one.

    \b
    Examples:
      abstain decide p.parquet --loss f1 --penalty concave:0.01 -o q.parquet
      abstain decide p.csv --penalty 0.2 -o q.csv --queue review.csv
      abstain decide p.csv --loss hamming:false_negative=5,false_positive=1 --labels sky,sea
      abstain decide scores/ -o partial/ --resume
      abstain decide scores/ -o partial/ --cluster tcp://scheduler:8786
      abstain decide box.parquet --intervals --loss f1 --penalty 0.05 -o q.parquet
      abstain decide lower.csv --upper upper.csv --rule skeptical --penalty none -o q.csv
      zcat p.csv.gz | abstain decide - --penalty none | head
    """
    target = options.choose_target(output_file)
    if target == "-":
        output.use_stderr()
    if (resume or cluster) and not is_folder(target):
        raise click.BadParameter(
            f"{'--resume' if resume else '--cluster'} needs a folder for a file of answers each; {target!r} is none "
            "(a new one ends in /)",
            param_hint="--output",
        )
    if cluster and queue:
        raise click.BadParameter("a cluster writes no queue; decide without --cluster", param_hint="--queue")
    judged = _read_rule(intervals, upper, rule, optimism, on_error)
    if upper is not None and kind != "probability":
        raise click.UsageError("--kind logit is for one file with both ends (--intervals), not for two files")
    if upper == "-" and "-" in inputs:
        raise click.UsageError("standard input is one table, not two")
    options.require_unread([output_file, queue], penalty)
    from abstain.streams import Job, decide_files, open_intervals, open_sources

    if judged:
        sources = open_intervals(inputs, upper, **judged, **reading, kind=kind)
    else:
        sources = open_sources(inputs, **reading, kind=kind)
        _hint_at_intervals(output, sources.label_names or ())
    resolved = options.penalty_of(penalty, sources.label_names, sources.n_labels)
    read_as = {name: value for name, value in reading.items() if name != "format"}
    job = Job(loss, resolved, kind=kind, on_error=on_error, **read_as, **judged)
    with _hint_at_on_error(on_error, is_interval=bool(judged)), output.progress("decide") as progress:
        summary = decide_files(sources, target, job, queue=queue, resume=resume, progress=progress, cluster=cluster)
    costs = options.in_words(loss, penalty)
    if judged.get("rule") == "skeptical" and penalty == Linear(inf):
        costs = f"{repr(loss).removesuffix('()')}, labels left open have no price"
    _print_summary(output, summary, costs, target, queue, promise=_promise(judged))
    n = summary.n_rows
    output.write_json(
        rows=n,
        labels=summary.n_labels,
        files=summary.n_files,
        files_kept=summary.n_kept,
        abstained=summary.n_abstained,
        answered_1=None if loss.gives_rankings else summary.n_ones,
        abstention_rate=summary.abstention_rate if n else None,
        expected_loss=summary.total_expected_loss / n if n else None,
        rows_skipped=summary.n_skipped,
        labels_repaired=summary.n_repaired,
        loss=repr(loss),
        penalty=str(penalty),
        rule=judged.get("rule"),
        output=target,
        queue=queue,
    )


def _read_rule(
    intervals: bool,
    upper: str | None,
    rule: IntervalRule | None,
    optimism: float | None,
    on_error: str,
) -> dict[str, Any]:
    """Return the rule for intervals; {} if the input holds none."""
    if not intervals and upper is None:
        if rule is not None or optimism is not None:
            raise click.UsageError("--rule and --optimism are for intervals: add --intervals, or --upper FILE")
        return {}
    if intervals and upper is not None:
        raise click.UsageError("--intervals is for one file with both ends, --upper for a file of its own: give one")
    if on_error != "fail":
        raise click.UsageError("--on-error skip and abstain are for probabilities; intervals must all be right")
    if (rule == "hurwicz") != (optimism is not None):
        raise click.UsageError(
            "--optimism is for --rule hurwicz" if rule != "hurwicz" else "--rule hurwicz needs --optimism SHARE"
        )
    return {"rule": rule or "minimax", "optimism": optimism}


def _hint_at_intervals(output: Output, label_names: Sequence[str]) -> None:
    """Say so if columns that are decided as labels are called like the ends of intervals."""
    from abstain.streams._intervals import ENDS, interval_columns

    known = set(label_names)
    labels = (name.removesuffix(ENDS[0]) for name in label_names if name.endswith(ENDS[0]))
    columns = next(
        (columns for columns in map(interval_columns, ([label] for label in labels)) if known >= {*columns}), None
    )
    if columns is not None:
        output.note(
            f"{' and '.join(columns)} are decided as two labels; if they are ends of intervals, add --intervals"
        )


@contextmanager
def _hint_at_on_error(on_error: str, *, is_interval: bool) -> Iterator[None]:
    """Add to the error about a bad value that --on-error can go on without it."""
    try:
        yield
    except NoProbabilities:  # all values are bad: there is nothing to go on with
        raise
    except InvalidProbabilities as reason:
        hint = " (--on-error skip or abstain goes on without it)" if on_error == "fail" and not is_interval else ""
        raise InvalidProbabilities(f"{reason}{hint}") from reason


def _promise(judged: dict[str, Any]) -> str:
    """Return what the expected loss is called: it holds for one distribution, or for all in the intervals."""
    if not judged:
        return "expected loss"
    return "expected loss, by hurwicz," if judged["rule"] == "hurwicz" else "worst-case expected loss"


def _print_summary(
    output: Output, summary: "Summary", costs: str, target: str, queue: str | None, promise: str
) -> None:
    """Print what was decided, in sentences."""
    n, m = summary.n_rows, summary.n_labels
    share = f"{summary.abstention_rate:.2%} left open" if n else "nothing to decide"
    mean = f", {promise} {summary.total_expected_loss / n:.4g} per row ({costs})" if n else ""
    files = f" ({plural(summary.n_files, 'file')})" if summary.n_files > 1 else ""
    where = "" if target == "-" else f": {target}"
    output.print_line(f"{plural(n, 'row')} × {plural(m, 'label')}{files}, {share}{mean}{where}")
    if summary.n_kept:
        output.print_line(f"{plural(summary.n_kept, 'file')} {'was' if summary.n_kept == 1 else 'were'} there already")
    if queue:
        output.print_line(f"{plural(summary.n_abstained, 'review')} in order of what they save: {queue}")
    if summary.n_skipped:
        output.note(f"{plural(summary.n_skipped, 'row')} left out: something in them is no probability")
    if summary.n_repaired:
        output.note(f"{plural(summary.n_repaired, 'label')} left open because what was there is no probability")
