"""``abstain calibrate``: learn a calibration from scores in files and the truth, or turn scores into probabilities."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abstain._cli import options
from abstain._cli.output import Output, with_output
from abstain._utils.errors import quoted
from abstain._utils.wording import plural
from abstain.streams._write.destinations import is_folder

if TYPE_CHECKING:
    from abstain.calibration import Calibration

METHODS = "auto", "none", "temperature", "sigmoid", "beta", "isotonic", "venn-abers"
KINDS = "probability", "logit", "score"
MISSING_VALUES = {"nan": float("nan"), "-1": -1.0}
RARE = 5
"""Relevant rows below which a label is called rare."""
N_NAMED = 5
"""Rare labels that are named; of more, the number is told."""


@click.command(short_help="Make probabilities of scores, in files of any size.")
@click.argument("inputs", metavar="SCORES... [TRUTH]", nargs=-1, required=True, type=options.table)
@click.option(
    "-o",
    "--output",
    "output_file",
    metavar="FILE",
    shell_complete=options.complete_from(),
    help="Where to write: the calibration (.json), or with --with the probabilities, where the ending tells the "
    "format, a folder (it is there, or ends in /) gets a file for each input, and - is standard output.",
)
@click.option(
    "--with",
    "calibration_file",
    type=options.existing_file,
    metavar="FILE",
    help="Turn SCORES into probabilities with the calibration in this file.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="What is learnt; auto takes the method with the lowest cross-validated log loss. [default: auto]",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="What SCORES are: probabilities, logits, or scores of any scale, which is taken from the first rows. With "
    "--with, what the calibration must be for. [default: probability]",
)
@click.option(
    "--missing-values",
    type=click.Choice(list(MISSING_VALUES)),
    help="What marks labels in TRUTH that nobody has looked at, which are left out: nan (also an empty cell) or -1. "
    "[default: all are known]",
)
@click.option(
    "--weights",
    type=click.Path(exists=True),
    metavar="FILE",
    help="How much each row of TRUTH counts: a wide table with one column, or with one for each label.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    metavar="N",
    help="How many random parts of the rows methods are compared on. [default: 5]",
)
@click.option(
    "--intervals",
    is_flag=True,
    help="With --with and a calibration by venn-abers, write intervals: columns <label>_lower and <label>_upper for "
    "each label, which abstain decide --intervals reads.",
)
@options.reading
@click.option(
    "--resume",
    is_flag=True,
    help="With --with and a folder as output, keep the files that are already there and right.",
)
@with_output
@options.with_endings
def calibrate(
    inputs: Sequence[str],
    output_file: str | None,
    calibration_file: Path | None,
    method: str | None,
    kind: Any,
    missing_values: str | None,
    weights: str | None,
    folds: int | None,
    intervals: bool,
    reading: dict[str, Any],
    resume: bool,
    output: Output,
) -> None:
    """Learn what the probabilities of a model should be, and make them so.

    Without --with, SCORES and TRUTH (a file or a folder each, TRUTH with 1 and 0) are compared, and the calibration is
    written as JSON. The model must not have been fitted to these rows. Rows are in the same order; where both have ids,
    these must agree. Labels are matched by name. Labels with few relevant rows are drawn towards what the others say.

    With --with, SCORES (files, or folders of them) are turned into probabilities, which abstain decide reads. The table
    stays wide or long, and keeps its ids. Without -o they go to standard output unless that is a terminal.

    Files are of any size: {endings}; - is standard input. Wide tables have a column for each label; long ones have the
    columns id, label and probability (or what --id-column, --label-column and --value-column say), relevant in the
    truth. What is not listed in long scores is not calibrated.

    \b
    Examples:
      abstain calibrate p.parquet truth.parquet -o calibration.json
      abstain calibrate logits.npy truth.npy --kind logit --method sigmoid -o calibration.json
      abstain calibrate p.csv partly.csv --missing-values nan --weights w.csv -o calibration.json
      abstain calibrate new.parquet --with calibration.json -o calibrated.parquet
      abstain calibrate new.parquet --with venn-abers.json --intervals -o box.parquet
      abstain calibrate scores/ --with calibration.json -o calibrated/ --resume
      abstain calibrate new.csv --with calibration.json | abstain decide - | head
    """
    if inputs.count("-") > 1:
        raise click.UsageError("standard input is one table, not two")
    if calibration_file is None:
        if resume or intervals:
            option = "--resume" if resume else "--intervals"
            raise click.UsageError(f"{option} is for files of probabilities: give a calibration (--with FILE)")
        target = _require_json(inputs, output_file)
        scores, truth = inputs
        given = {"kind": kind, "method": method, "cv": folds}
        settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if missing_values is not None:
            settings["missing_values"] = MISSING_VALUES[missing_values]
        _learn(scores, truth, weights, target, reading, settings, output)
        return
    learning = {"--method": method, "--missing-values": missing_values, "--weights": weights, "--folds": folds}
    if (wrong := next((name for name, value in learning.items() if value is not None), None)) is not None:
        raise click.UsageError(f"{wrong} is for learning a calibration; {calibration_file} is one already")
    target_file = options.choose_target(output_file, "probabilities")
    _apply(inputs, target_file, calibration_file, kind, reading, output, intervals=intervals, resume=resume)


def _require_json(inputs: Sequence[str], output_file: str | None) -> Path:
    """Return where the calibration is to be written; raise an error if what was given is not for learning one."""
    if len(inputs) != 2:
        hint = "give the truth, too" if len(inputs) == 1 else "put several files into a folder"
        raise click.UsageError(
            f"a calibration is learnt from SCORES and TRUTH: {hint}; or apply one that was learnt (--with FILE)"
        )
    if output_file is None:
        raise click.UsageError("where to write the calibration? Give -o FILE.json")
    if not output_file.lower().endswith(".json"):
        raise click.BadParameter(
            f"a calibration is a .json file, not {quoted(output_file)}; probabilities are written once there is one "
            "(--with FILE)",
            param_hint="--output",
        )
    return Path(output_file)


def _learn(
    scores: str,
    truth: str,
    weights: str | None,
    target: Path,
    reading: dict[str, Any],
    settings: dict[str, Any],
    output: Output,
) -> None:
    from abstain._utils.atomic import require_writable
    from abstain.streams import fit_calibration, open_aligned, open_sources

    options.require_unread([str(target)], *map(Path, filter(None, (scores, truth, weights))))
    require_writable(target)
    sides = open_aligned({"probabilities": scores, "truth": truth}, **reading)
    if weights is not None:
        settings = settings | {"sample_weight": open_sources(weights, id_column=reading["id_column"])}
    with output.progress("calibrate") as progress:
        calibration = fit_calibration(sides["probabilities"], sides["truth"], progress=progress, **settings)
    calibration.save(target)
    _print_calibration(output, calibration, target)


def _print_calibration(output: Output, calibration: "Calibration", target: Path) -> None:
    """Print what was learnt."""
    n, m, losses = calibration.n_rows, calibration.n_labels, calibration.log_losses
    before, after = losses.get("none"), losses.get(calibration.method)
    rare = [str(_name(calibration, j)) for j in range(m) if calibration.n_relevant[j] < RARE]
    change = "" if before is None else f", log loss {before:.4g} → {after:.4g} (cross-validated)"
    output.print_line(f"{plural(n, 'row')} × {plural(m, 'label')}, method {calibration.method}{change}: {target}")
    if rare:
        named = ", ".join(rare[:N_NAMED]) + (f" and {len(rare) - N_NAMED} more" if len(rare) > N_NAMED else "")
        have = "has" if len(rare) == 1 else "have"
        output.print_line(f"{plural(len(rare), 'label')} {have} fewer than {RARE} relevant rows: {named}")
    gained = before is not None and after is not None and after < before
    if not gained:
        why = "there are too few rows to compare" if before is None else "the log loss is not lower than before"
        output.note(f"Warning: calibration has gained nothing: {why}")
    output.write_json(
        rows=n,
        labels=m,
        method=calibration.method,
        kind=calibration.kind,
        log_loss_before=before,
        log_loss_after=after,
        log_losses=dict(losses),
        gained=gained,
        rare_labels=rare,
        output=str(target),
    )


def _name(calibration: "Calibration", j: int) -> Any:
    return j if calibration.label_names is None else calibration.label_names[j]


def _apply(
    inputs: Sequence[str],
    target: str,
    calibration_file: Path,
    kind: str | None,
    reading: dict[str, Any],
    output: Output,
    *,
    intervals: bool,
    resume: bool,
) -> None:
    if target == "-":
        output.use_stderr()
    if resume and not is_folder(target):
        raise click.BadParameter(
            f"--resume needs a folder for a file of probabilities each; {target!r} is none (a new one ends in /)",
            param_hint="--output",
        )
    options.require_unread([target], calibration_file)
    from abstain.calibration import Calibration
    from abstain.streams import calibrate_files, open_sources

    calibration = Calibration.load(calibration_file)
    if kind is not None and kind != calibration.kind:
        raise click.BadParameter(
            f"{calibration_file} was learnt from scores of the kind {calibration.kind}, not {kind}", param_hint="--kind"
        )
    sources = open_sources(inputs, **reading)
    with output.progress("calibrate") as progress:
        summary = calibrate_files(sources, target, calibration, intervals=intervals, resume=resume, progress=progress)
    size = f"{plural(summary.n_rows, 'row')} × {plural(summary.n_labels, 'label')}"
    files = f" ({plural(summary.n_files, 'file')})" if summary.n_files > 1 else ""
    where = "" if target == "-" else f": {target}"
    output.print_line(f"{size}{files}, calibrated by {calibration.method}{where}")
    if summary.n_kept:
        output.print_line(f"{plural(summary.n_kept, 'file')} {'was' if summary.n_kept == 1 else 'were'} there already")
    output.write_json(
        rows=summary.n_rows,
        labels=summary.n_labels,
        files=summary.n_files,
        files_kept=summary.n_kept,
        method=calibration.method,
        kind=calibration.kind,
        calibration=str(calibration_file),
        output=target,
    )
