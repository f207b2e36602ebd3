"""A fitted calibration: from a model's scores to probabilities, label by label; saved as JSON."""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from abstain._core.intervals import IntervalRule, Intervals
from abstain._core.tables import Axes, Table, csr_in_order
from abstain._utils.atomic import atomic_write
from abstain._utils.errors import InvalidDataset, InvalidLabels, InvalidOutput, InvalidParameter, MissingFile, quoted
from abstain._utils.frames import is_frame, make_frame
from abstain._utils.threads import for_each
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.calibration._groups import LIMIT
from abstain.calibration._isotonic import VennAbers
from abstain.calibration._method import Method
from abstain.calibration._methods import METHODS
from abstain.calibration._scores import KINDS, Kind, Scores, log_odds

FORMAT, VERSION = "abstain calibration", 1
ENTRIES_PER_BLOCK = 1 << 15  # so few that temporary arrays stay in the cache
SHOWN_LABELS = 8
SHOWN_PROBABILITIES = (0.01, 0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """A function from scores to probabilities for each label, as `fit` learns it.

    Attributes
    ----------
    method : str
        The name of the method; the one that was chosen, if it was "auto".
    kind : {"probability", "logit", "score"}
        What the scores are.
    label_names : tuple or None
        The names of the labels, if they are known.
    n_labels : int
    n_rows : int
        The number of rows it was learnt from.
    n_known : float array of shape (n_labels,)
        How many of them (or which weight) had a known truth, by label.
    n_relevant : float array of shape (n_labels,)
        How many of these (or which weight) were relevant.
    log_losses : dict of str to float
        The mean log loss of rows that were not learnt from, by method: without calibration ("none"), and with the
        methods that were tried.

    Examples
    --------
    >>> import numpy as np
    >>> import abstain
    >>> random = np.random.default_rng(0)
    >>> truth = random.random((1000, 2)) < [0.3, 0.05]
    >>> logits = 4 * truth + random.normal(-2, 2, (1000, 2))
    >>> calibration = abstain.calibration.fit(logits, truth, method="sigmoid", kind="logit")
    >>> calibration.transform([[-2.0, -2.0], [1.0, 1.0]]).round(2)
    array([[0.06, 0.01],
           [0.51, 0.15]])
    """

    kind: Kind
    label_names: tuple[Hashable, ...] | None
    n_rows: int
    n_known: Floats
    n_relevant: Floats
    log_losses: Mapping[str, float]
    scale: float
    """By which scores are multiplied before they are used as log-odds; 1 unless their kind is "score"."""
    _method: Method

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._method.name

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.n_known)

    def transform(self, scores: Any) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        scores : array-like, data frame or sparse matrix of shape (n_instances, n_labels)
            Scores of the kind that was learnt from. If they have label names, these must be the calibration's.

        Returns
        -------
        probabilities : array, data frame, Table or CSR array of shape (n_instances, n_labels)
            A data frame for a data frame, with its names; CSR for a sparse matrix, whose entries that are not stored
            stay 0; float32 if the scores are.
        """
        table = self._read(scores)
        matrix = table.matrix
        if sparse.issparse(matrix):
            x = log_odds(matrix.data, self.kind, self.scale)
            values = self._method.probabilities(x, matrix.indices).astype(_floating(matrix.dtype))
            return self._like(scores, table, csr_in_order(values, matrix.indices, matrix.indptr, matrix.shape))
        result = np.empty(matrix.shape, _floating(matrix.dtype))

        def calibrate(rows: slice) -> None:
            x = log_odds(matrix[rows], self.kind, self.scale)
            result[rows] = self._method.probabilities(x, np.arange(self.n_labels))

        for_each(calibrate, self._blocks(len(matrix)))
        return self._like(scores, table, result)

    def intervals(self, scores: Any, *, rule: IntervalRule = "minimax", optimism: float | None = None) -> Intervals:
        """Return the intervals of probabilities of the method "venn-abers".

        One of the two ends is what isotonic regression would say had the instance been in the sample it was learnt from
        with its true label. Each label's interval is its own: the fewer relevant rows were seen, the wider. It always
        contains the probability that `transform` gives.

        Parameters
        ----------
        scores : array-like or data frame of shape (n_instances, n_labels)
            Scores of the kind that was learnt from.
        rule, optimism :
            As for `abstain.Intervals`.

        Returns
        -------
        intervals : Intervals
            `abstain.decide` takes them; with `lower` and `upper`, and the names of a data frame.

        Examples
        --------
        >>> import abstain
        >>> scores, truth = [[0.2], [0.3], [0.4], [0.6], [0.7], [0.8]], [[0], [0], [1], [0], [1], [1]]
        >>> calibration = abstain.calibration.fit(scores, truth, method="venn-abers")
        >>> box = calibration.intervals([[0.3], [0.7]])
        >>> box.lower.round(2).tolist(), box.upper.round(2).tolist()
        ([[0.0], [0.5]], [[0.5], [1.0]])
        >>> abstain.decide(box, penalty=0.4).labels.tolist()
        [[-1], [-1]]
        """
        method = self.require_intervals()
        table = self._read(scores)
        if sparse.issparse(table.matrix):
            raise InvalidParameter("intervals of a sparse table are not stored; pass some rows as a dense array")
        lower, upper = np.empty(table.matrix.shape), np.empty(table.matrix.shape)

        def bound(rows: slice) -> None:
            x = log_odds(table.matrix[rows], self.kind, self.scale)
            both = method.intervals(x, np.arange(self.n_labels))
            lower[rows], upper[rows] = both[..., 0], both[..., 1]

        for_each(bound, self._blocks(len(lower)))
        names = self.label_names if table.axes.label_names is None else table.axes.label_names
        ends = (Table(end, names, table.axes.index) for end in (lower, upper))
        return Intervals(*ends, rule=rule, optimism=optimism)

    def require_intervals(self) -> VennAbers:
        """Return the method, which must be "venn-abers"; raise `InvalidParameter` if it gives no intervals."""
        if not isinstance(self._method, VennAbers):
            raise InvalidParameter(f"the method {self.method!r} gives no intervals; fit with method='venn-abers'")
        return self._method

    def _blocks(self, n_rows: int) -> list[slice]:
        height = max(1, ENTRIES_PER_BLOCK // self.n_labels)
        return [slice(first, first + height) for first in range(0, n_rows, height)]

    def _read(self, scores: Any) -> Scores:
        table = Scores.read(scores, self.kind)
        if table.matrix.shape[1] != self.n_labels:
            raise InvalidLabels(
                f"the scores have {plural(table.matrix.shape[1], 'label')}; the calibration has {self.n_labels}"
            )
        Axes(self.label_names).require_labels(table.axes.label_names, "the table of scores")
        return table

    def _like(self, given: Any, table: Scores, values: Any) -> Any:
        """Return values in a table like the one that was given."""
        if isinstance(given, Table) or (table.axes.label_names is not None and not is_frame(given)):
            return Table(values, table.axes.label_names, table.axes.index)
        if not is_frame(given):
            return values
        if table.axes.library == "pandas":
            return Table(values, table.axes.label_names, table.axes.index).to_frame()
        names = map(str, table.axes.names(self.n_labels))
        return make_frame({name: values[:, j] for j, name in enumerate(names)}, table.axes.library)

    def save(self, file: str | Path) -> None:
        """Write the calibration to a JSON file.

        Parameters
        ----------
        file : str or path
            Its fields: "format", "version", "method", "kind", "scale", "n_rows", "log_losses" and "labels", with an
            object for each label; docs/calibration.md says what they mean.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"
        with atomic_write(Path(file)) as target:
            target.write(text.encode())

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """Read a calibration that `save` has written.

        Parameters
        ----------
        file : str or path
            It is read as data: nothing in it is executed.

        Returns
        -------
        calibration : Calibration
        """
        try:
            content = json.loads(Path(file).read_bytes())
        except FileNotFoundError as reason:
            raise MissingFile(f"{file}: there is no such file") from reason
        except (UnicodeDecodeError, json.JSONDecodeError) as reason:
            raise InvalidDataset(f"{file}: is no JSON file ({reason})") from reason
        try:
            return cls.from_dict(content)
        except InvalidDataset as reason:
            raise InvalidDataset(f"{file}: {reason}") from reason

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as a dict of types that JSON has."""
        names = Axes(self.label_names).names(self.n_labels)
        wrong = next((name for name in names if not isinstance(name, str | int)), None)
        if wrong is not None:
            raise InvalidOutput(f"label {quoted(wrong)} is neither text nor a whole number, as names in JSON must be")
        labels = [
            ({} if self.label_names is None else {"name": names[j]})
            | {"known": float(self.n_known[j]), "relevant": float(self.n_relevant[j])}
            | self._method.label_to_dict(j)
            for j in range(self.n_labels)
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "kind": self.kind,
            "scale": self.scale,
            "n_rows": self.n_rows,
            "log_losses": dict(self.log_losses),
            "labels": labels,
        }

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Return the calibration that `to_dict` has described; raise `InvalidDataset` for anything else.

        Parameters
        ----------
        content : dict

        Returns
        -------
        calibration : Calibration
        """
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InvalidDataset(f"is no calibration: the field 'format' must be {FORMAT!r}")
        version = content.get("version")
        if version != VERSION:
            newer = isinstance(version, int) and version > VERSION
            hint = "; a newer version of abstain has written it" if newer else ""
            raise InvalidDataset(f"has version {quoted(version)}, expected {VERSION}{hint}")
        fields = {"format", "version", "method", "kind", "scale", "n_rows", "log_losses", "labels"}
        _require_fields(content, fields, "the calibration")
        if not isinstance(content["method"], str) or content["method"] not in METHODS:
            raise InvalidDataset(f"method is {quoted(content['method'])}; expected {', '.join(METHODS)}")
        if content["kind"] not in KINDS:
            raise InvalidDataset(f"kind is {quoted(content['kind'])}; expected {', '.join(KINDS)}")
        method = METHODS[content["method"]]
        labels = _read_labels(content["labels"], method)
        names = [label["name"] for label in labels if "name" in label]
        if len(set(names)) < len(names) or len(names) not in (0, len(labels)):
            raise InvalidDataset("labels: either all have a name, each another one, or none has")
        if not isinstance(content["log_losses"], dict):
            raise InvalidDataset("log_losses is no object")
        if _require_number(content["scale"], "scale") <= 0:
            raise InvalidDataset(f"scale is {content['scale']}; expected a number > 0")
        calibration = cls(
            kind=content["kind"],
            label_names=tuple(names) or None,
            n_rows=int(_require_number(content["n_rows"], "n_rows")),
            n_known=np.array([label["known"] for label in labels], np.float64),
            n_relevant=np.array([label["relevant"] for label in labels], np.float64),
            log_losses={str(k): _require_number(v, f"log_losses: {k}") for k, v in content["log_losses"].items()},
            scale=float(content["scale"]),
            _method=method.from_dicts(labels),
        )
        calibration._require_monotone()
        return calibration

    def _require_monotone(self) -> None:
        """Raise `InvalidDataset` if a label's function is none of a probability that does not decrease."""
        labels = np.arange(self.n_labels)
        grid = np.linspace(self._method.low, self._method.high, 17)
        p = self._method.probabilities(grid, labels)
        wrong = (p < 0) | (p > 1) | (np.diff(p, axis=0, prepend=0.0) < -1e-12)
        if wrong.any():
            j = int(np.flatnonzero(wrong.any(axis=0))[0])
            raise InvalidDataset(f"{self._label(j)}: its parameters are of no function that increases from 0 to 1")

    def _label(self, j: int) -> str:
        return f"label {j}" if self.label_names is None else f"label {quoted(self.label_names[j])}"

    def __repr__(self) -> str:
        n = f"{plural(self.n_labels, 'label')} (method={self.method!r}, kind={self.kind!r})"
        text = f"Calibration of {n}, learnt from {plural(self.n_rows, 'row')}"
        if "none" in self.log_losses:
            before, after = self.log_losses["none"], self.log_losses[self.method]
            text += f": log loss {before:.4g} before, {after:.4g} after (cross-validated)"
        names = [str(name) for name in Axes(self.label_names).names(self.n_labels)[:SHOWN_LABELS]]
        shown = np.arange(len(names))
        x = log_odds(np.array(SHOWN_PROBABILITIES), "probability", 1.0)
        becomes = self._method.probabilities(np.tile(x[:, np.newaxis], len(names)), shown).T
        head = "logit" if self.kind == "logit" else "probability" if self.kind == "probability" else "score"
        given = x / self.scale if self.kind != "probability" else np.array(SHOWN_PROBABILITIES)
        rows = [["label", "relevant", *(f"{head} {value:.3g} →" for value in given)]]
        for j, name in enumerate(names):
            rows.append([name, f"{self.n_relevant[j]:.5g}", *(f"{p:.3g}" for p in becomes[j])])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        more = [f"… and {self.n_labels - len(names)} more"] if self.n_labels > len(names) else []
        return "\n".join([text, *lines, *more])


def _floating(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def _require_fields(content: Mapping[str, Any], expected: set[str], where: str) -> None:
    """Raise `InvalidDataset` for a field that is missing or unknown."""
    if missing := sorted(expected - content.keys()):
        raise InvalidDataset(f"{where}: the field {missing[0]!r} is missing")
    if unknown := sorted(content.keys() - expected):
        raise InvalidDataset(f"{where}: there is no field {quoted(unknown[0])}")


def _require_number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidDataset(f"{where} is {quoted(value)}; expected a number")
    return float(value)


def _read_labels(labels: Any, method: type[Method]) -> list[dict[str, Any]]:
    """Return the parameters of each label, checked field by field."""
    if not isinstance(labels, list) or not labels or not all(isinstance(label, dict) for label in labels):
        raise InvalidDataset("labels is no list of objects, one for each label")
    for j, label in enumerate(labels):
        where = f"label {quoted(label['name'])}" if "name" in label else f"label {j}"
        _require_fields(label, {"known", "relevant", *method.FIELDS, *({"name"} & label.keys())}, where)
        if "name" in label and (not isinstance(label["name"], str | int) or isinstance(label["name"], bool)):
            raise InvalidDataset(f"{where}: a name is text or a whole number")
        for name in ("known", "relevant", *method.FIELDS):
            n_dimensions = method.FIELDS.get(name, 0)
            _require_numbers(label[name], n_dimensions, f"{where}: {name}")
        if not -LIMIT <= label["low"] <= label["high"] <= LIMIT:
            raise InvalidDataset(f"{where}: expected −{LIMIT:g} ≤ low ≤ high ≤ {LIMIT:g}")
        method.check_label(label, where)
    return labels


def _require_numbers(value: Any, n_dimensions: int, where: str) -> None:
    """Raise `InvalidDataset` unless a value is a number, or nested lists of numbers of so many dimensions."""
    if n_dimensions == 0:
        _require_number(value, where)
    elif not isinstance(value, list) or not value:
        raise InvalidDataset(f"{where} is {quoted(value)}; expected a list of numbers")
    else:
        for each in value:
            _require_numbers(each, n_dimensions - 1, where)
