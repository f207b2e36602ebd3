"""Options that several commands share (losses, penalties, prices, files), and how their values are read."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import wraps
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import click

from abstain._core.losses import LOSSES, Loss
from abstain._core.penalties import Capped, Concave, Linear, Penalty, PerLabel
from abstain._utils.errors import InvalidDataset, InvalidPenalty, quoted
from abstain._utils.numbers import LARGEST_PRICE, is_number, read_number
from abstain.streams._formats import FORMATS, list_endings, list_names

Command = TypeVar("Command", bound=Callable[..., Any])

LOSS_FORMS = ", ".join(form for loss in LOSSES.values() for form in loss.text_forms)
PENALTY_FORMS = "0.1, linear:0.1, concave:0.3, capped:0.1,3 (at most 3 labels a row), none, or a file (label,cost)"

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)


class Number(click.FloatRange):
    """A plain decimal number: Python also takes 0_1 for 1."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with what is wrong with it."""
        if isinstance(value, str) and not is_number(value):
            with_point = value.replace(",", ".")
            hint = f"; did you mean {with_point}?" if is_number(with_point) else ""
            self.fail(f"{quoted(value)} is not a number{hint}", param, ctx)
        return super().convert(value, param, ctx)


class Share(Number):
    """A number from 0 to 1."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with what is wrong with it: it may be per cent."""
        number = Number().convert(str(value).removesuffix("%"), param, ctx)
        if not 0 <= number <= 1 or str(value).endswith("%"):
            hint = f"; {number:g} % is {number / 100:g}" if 0 <= number <= 100 else ""
            self.fail(f"{value} is not a share, a number from 0 to 1{hint}", param, ctx)
        return number


class Price(Number):
    """A number from 0 to `LARGEST_PRICE`; click's ranges alone accept nan."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with what is wrong with it."""
        number = super().convert(value, param, ctx)
        if not number <= LARGEST_PRICE:
            self.fail(f"{number} is not a price; expected a number from 0 to {LARGEST_PRICE:g}", param, ctx)
        return number


price = Price(min=0)
share = Share(min=0, max=1)


def read_loss(text: str) -> Loss:
    """Return the loss that a name means, perhaps with parameters."""
    text = text.strip().lower()
    name = text.partition(":")[0]
    by_name = {form.partition(":")[0]: loss for loss in LOSSES.values() for form in loss.text_forms}
    try:
        if name in by_name:
            return by_name[name].from_text(text)
    except ValueError as reason:
        raise click.BadParameter(f"{quoted(text)} ({reason}); expected one of {LOSS_FORMS}") from reason
    close = get_close_matches(name, list(by_name), n=1)
    hint = f" did you mean {close[0]!r}?" if close and close[0] != name else ""
    raise click.BadParameter(f"there is no loss {quoted(text)};{hint} expected one of {LOSS_FORMS}")


def read_penalty(text: str) -> Penalty | Path:
    """Return the penalty that a text means, or the file with a cost for each label."""
    try:
        return _penalty(text.strip().lower())
    except InvalidPenalty as reason:
        raise click.BadParameter(f"{quoted(text)} ({reason}); expected {PENALTY_FORMS}") from reason
    except ValueError as reason:
        if (file := _existing_file(text)) is not None:
            return file
        raise click.BadParameter(f"{quoted(text)} is not a penalty; expected {PENALTY_FORMS}") from reason


def _penalty(text: str) -> Penalty:
    name, _, given = text.partition(":")
    if text == "none":
        return Linear(inf)
    if name == "capped":
        cost, _, most = given.rpartition(",")
        return Capped(_penalty(cost), int(most))
    kinds = {"linear": Linear, "concave": Concave}
    return kinds[name](read_number(given)) if name in kinds else Linear(read_number(text))


def read_number_or_file(text: str) -> float | Path:
    """Return a number for all labels, or the file with one for each."""
    try:
        number: float = price.convert(text, None, None)
    except click.BadParameter as reason:
        if (file := _existing_file(text)) is not None:
            return file
        expected = "a number ≥ 0 nor a file with one for each label"
        raise click.BadParameter(f"{quoted(text)} is neither {expected}") from reason
    return number


def _existing_file(text: str) -> Path | None:
    """Return the file that a text names; None if it does not look like the name of a file."""
    file = Path(text)
    with suppress(OSError):  # the name may be too long for a file
        if file.exists():
            return file
    if file.name != text or text.lower().endswith(tuple(FORMATS)):
        raise click.BadParameter(f"there is no file {quoted(text)}")
    return None


def read_names(text: str) -> tuple[str, ...]:
    """Return the names in a text with commas between them, or in a file (@FILE) with a name on each line."""
    names = text.split(",")
    if text.startswith("@"):
        try:
            names = Path(text[1:]).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as reason:
            message = getattr(reason, "strerror", None) or reason
            raise click.BadParameter(f"{text[1:]} cannot be read ({message})") from reason
    found = tuple(name.strip() for name in names if name.strip())
    if not found:
        raise click.BadParameter(f"there is no name in {quoted(text)}")
    return found


def by_label(
    file: Path, label_names: Sequence[str] | None, n_labels: int, *, absent: float | None = None
) -> list[float]:
    """Return the numbers in a file (label, and a second column) in the order of the labels.

    Labels that the file does not name get the number `absent`; without it, the file must name all.
    """
    from abstain.streams._tables import read_table

    table = read_table(file, index="label")
    if table.shape[1] != 1:
        raise InvalidDataset(f"{file}: expected two columns, the label and a number; there are {1 + table.shape[1]}")
    names = [str(j) for j in range(n_labels)] if label_names is None else list(label_names)
    given: dict[str, float] = {}
    for name, number in zip(map(str, table.index), table.values[:, 0].tolist(), strict=True):
        if name in given:
            raise InvalidDataset(f"{file}: label {quoted(name)} is listed twice")
        if name not in names:
            raise InvalidDataset(f"{file}: names {quoted(name)}, which is none of the labels")
        if not 0 <= number < inf:
            raise InvalidDataset(f"{file}: label {quoted(name)} has {number}; expected a finite number ≥ 0")
        given[name] = number
    missing = next((name for name in names if name not in given), None)
    if missing is not None and absent is None:
        raise InvalidDataset(f"{file}: says nothing of label {quoted(missing)}")
    return [given.get(name, inf if absent is None else absent) for name in names]


def require_unread(outputs: Sequence[str | None], *given: Any) -> None:
    """Raise `InvalidDataset` if an output would take the place of a file that an option has named."""
    from abstain._utils.atomic import require_apart

    written = [Path(output) for output in outputs if output is not None]
    require_apart(written, [file for file in given if isinstance(file, Path)])


def penalty_of(given: Penalty | Path, label_names: Sequence[str] | None, n_labels: int) -> Penalty:
    """Return the penalty itself, or `PerLabel` with the costs in its file."""
    return PerLabel(by_label(given, label_names, n_labels)) if isinstance(given, Path) else given


def in_words(loss: Loss, given: Penalty | Path) -> str:
    """Return in words what wrong answers and labels left open cost."""
    return f"{repr(loss).removesuffix('()')}, {_cost_in_words(given)}"


def _cost_in_words(given: Penalty | Path) -> str:
    if isinstance(given, Path):
        return f"labels left open cost what {given} says"
    if given == Linear(inf):
        return "no label may be left open"
    if isinstance(given, Capped):
        return f"{_cost_in_words(given.penalty)}, at most {given.max_abstained} in a row"
    return f"a label left open costs {given.cost:g}" if isinstance(given, Linear) else f"penalty {given!r}"


def choose_target(output_file: str | None, what: str = "answers") -> str:
    """Return where the output goes: the file that was given, or standard output unless that is a terminal."""
    if output_file is not None:
        return output_file
    if sys.stdout.isatty():
        raise click.UsageError(f"where to write the {what}? Give -o FILE, or -o - to see them here")
    return "-"


def complete_from(*names: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return a completion for shells: the names that begin with what is typed, or else files."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [name for name in names if name.startswith(incomplete)]
        return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]

    return complete


class CommandWithLists(click.Command):
    """A command whose repeatable options also take several values at once: ``--losses f1 rank``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        repeatable = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        spread: list[str] = []
        option, has_value = "", False
        for arg in args:
            if arg.startswith("-"):
                name, equals, _ = arg.partition("=")
                option, has_value = (name if name in repeatable else ""), bool(equals)
            else:
                spread += [option] if option and has_value else []
                has_value = True
            spread.append(arg)
        return super().parse_args(ctx, spread)


def names(option: str, *, help_text: str, default: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add an option for several names: --losses f1,rank, and in a `CommandWithLists` --losses f1 rank."""
    return click.option(
        option,
        multiple=True,
        default=default,
        show_default=bool(default),
        metavar="A,B,…",
        callback=_split_names,
        help=help_text,
    )


def _split_names(_: click.Context, __: click.Parameter, values: Sequence[str]) -> list[str]:
    """Return all names that were given; the name of a file may have commas in it."""
    found = []
    for value in values:
        parts = [value] if Path(value).exists() else [name.strip() for name in value.split(",")]
        if not any(parts):
            raise click.BadParameter(f"there is no name in {quoted(value)}")
        found += [name for name in parts if name]
    return found


def with_endings(command: Command) -> Command:
    """Put the endings of all file formats into the help of a command, in the place of ``{endings}``."""
    command.__doc__ = (command.__doc__ or "").replace("{endings}", list_endings())
    return command


table = click.Path(exists=True, allow_dash=True)
inputs = click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=table)
loss = click.option(
    "--loss",
    type=read_loss,
    metavar="LOSS",
    default="hamming",
    show_default=True,
    shell_complete=complete_from(*LOSS_FORMS.split(", ")),
    help=f"What wrong answers cost: {LOSS_FORMS}. A false negative is a relevant label answered 0, a false positive an "
    "irrelevant one answered 1.",
)
penalty = click.option(
    "--penalty",
    type=read_penalty,
    metavar="PENALTY",
    default="0.1",
    show_default=True,
    shell_complete=complete_from("linear:0.1", "concave:0.3", "capped:0.1,3", "none"),
    help=f"What leaving labels open costs: {PENALTY_FORMS}.",
)
output = click.option(
    "-o",
    "--output",
    "output_file",
    metavar="FILE",
    shell_complete=complete_from(),
    help="Where to write the answers; the ending tells the format. A folder (it is there, or ends in /) gets a file "
    "for each input; - is standard output.",
)
queue = click.option(
    "--queue",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the labels left open, the most valuable review first: id, label, probability, saves.",
)
id_column = click.option(
    "--id-column",
    metavar="NAME",
    help="The column with the names of the rows. [default: the first, if it holds text or is called id]",
)
label_column = click.option(
    "--label-column", metavar="NAME", help="The column of long tables with the names of the labels. [default: label]"
)
value_column = click.option(
    "--value-column",
    metavar="NAME",
    help="The column of long tables with the numbers. [default: probability, or else answer or relevant]",
)
labels = click.option(
    "--labels",
    type=read_names,
    metavar="A,B,…|@FILE",
    help="The labels to read, in this order; @FILE has one on each line. [default: all]",
)
form = click.option(
    "--form",
    type=click.Choice(["wide", "long"]),
    help="A column for each label, or a row for each stored probability. [default: long if there are three columns, "
    "two of them called label and probability, or if --label-column or --value-column is given]",
)
format_ = click.option(
    "--format",
    metavar="KIND",
    help=f"The kind of input, where its name or its first bytes do not tell: {list_names()}.",
)
kind = click.option(
    "--kind",
    type=click.Choice(["probability", "logit"]),
    default="probability",
    show_default=True,
    help="What the input holds: probabilities, or logits, of which the sigmoid is taken.",
)


READING = ("form", "id_column", "label_column", "value_column", "labels", "format")


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options about how inputs are read: the command is called with all of them in a dict, `reading`."""

    @wraps(command)
    def with_reading(*args: Any, **given: Any) -> None:
        command(*args, reading={name: given.pop(name) for name in READING}, **given)

    return id_column(labels(form(label_column(value_column(format_(with_reading))))))
