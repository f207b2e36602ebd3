"""Multi-label tables from MULAN's and MEKA's files: ARFF, and which of its attributes are labels."""

import operator
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from abstain._utils.errors import DatasetWarning, InvalidDataset, InvalidParameter
from abstain._utils.extras import optional
from abstain._utils.suggestions import did_you_mean
from abstain.datasets._arff import Header, Source, broken, read_header, read_rows
from abstain.datasets._columns import Columns, TableBuilder
from abstain.datasets._label_xml import XML_ENDINGS, candidates, read_label_names

MIN_BYTES_FOR_PROGRESS: Final = 20_000_000  # smaller files are read in no time


def load_mulan(
    arff: str | os.PathLike[str],
    xml: str | os.PathLike[str] | None = None,
    *,
    labels: int | Iterable[str] | None = None,
    as_frame: bool = False,
    progress: bool | None = None,
) -> Bunch:
    r"""Return the features and the labels of a MULAN or MEKA file.

    The file may be dense or sparse ARFF, plain or compressed with gzip or bzip2. It is read in one pass, in little more
    memory than the result takes.

    Parameters
    ----------
    arff : path
        The ARFF file.
    xml : path, optional
        MULAN's list of labels, matched by name.
    labels : int or list of str, optional
        The labels' names; or n for the first n attributes, −n for the last n, as MEKA's ``-C``. Without it the labels
        are those of `xml`, of a list beside the file, or of ``-C`` in the relation's name, the first of these that
        there is. For ``yeast-train.arff.gz`` the list is ``yeast-train.xml`` or ``yeast.xml``, also compressed.
    as_frame : bool, default=False
        Give pandas frames instead of arrays.
    progress : bool, optional
        Whether to show the progress; by default on a terminal, for large files.

    Returns
    -------
    bunch : Bunch
        ``data``, float64, is a CSR array if the file is sparse; missing values are NaN. ``target``, uint8, has its
        labels in the order of the ARFF file. ``feature_names`` and ``target_names`` name the columns of both, and
        ``relation`` the whole.

        Nominal features are numbered in the order of their declaration, and ``categories`` has the values by feature;
        but if all values are numbers, they stay what they are, and there are no categories. Dates are seconds since
        1970-01-01, read as UTC. Text has no place in a matrix: ``strings`` has an array for each string attribute,
        "" where it is missing.

        In frames, nominal features are categorical, dates are dates, and text is among the features.

    Raises
    ------
    InvalidDataset
        If a file is broken; the message begins with its name and the line.

    Warns
    -----
    DatasetWarning
        If the list beside the file and ``-C`` name different labels, or if nothing but a ``-C`` names them and the
        attributes were moved after it was written. Files that were edited with WEKA carry such a ``-C`` along.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from abstain.datasets import load_mulan
    >>> lines = "@relation 'weather: -C 2'", "@attribute umbrella {0,1}", "@attribute boots {0,1}"
    >>> lines += "@attribute rain numeric", "@attribute sky {blue, grey}", "@data", "1,0,2.5,grey", "0,0,?,blue"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "weather.arff")
    ...     _ = file.write_text("\n".join(lines))
    ...     weather = load_mulan(file)
    >>> weather.data
    array([[2.5, 1. ],
           [nan, 0. ]])
    >>> weather.target
    array([[1, 0],
           [0, 0]], dtype=uint8)
    >>> weather.target_names, weather.categories
    (['umbrella', 'boots'], {'sky': ('blue', 'grey')})
    """
    from tqdm import tqdm

    pd = optional("pandas", "as_frame needs pandas") if as_frame else None
    with Source(arff) as source:
        header, blocks = read_header(source.name, source.blocks())
        relation, count = _read_relation(header.relation)
        found = _find_labels(source, header, labels, xml, count)
        if found.warning:
            warnings.warn(f"{source.name}: {found.warning}", DatasetWarning, stacklevel=2)
        columns = Columns(source.name, header, found.columns, found.error_hint)
        table = TableBuilder(columns)
        disable = (None if source.size > MIN_BYTES_FOR_PROGRESS else True) if progress is None else not progress
        with tqdm(desc=source.name, total=source.size, unit="B", unit_scale=True, disable=disable) as bar:
            for rows in read_rows(source.name, header, blocks):
                table.append(rows)
                bar.update(source.position - bar.n)
            bar.update(source.position - bar.n)
        if table.target.n_rows == 0:
            raise broken(source.name, None, "there are no instances after @data")
    bunch = table.bunch(relation)
    return bunch if pd is None else _as_frames(bunch, columns, pd)


def _read_relation(relation: str) -> tuple[str, int | None]:
    """Return the name of the relation and the number after -C: `Music: -C 6 -split 0.5` gives Music and 6."""
    option = re.search(r"(?<![^\s:])-C\s+([+-]?\d+)(?!\S)", relation)
    if option is None:
        return relation, None
    return re.split(r"(?<![^\s:])-[A-Za-z]", relation, maxsplit=1)[0].rstrip(" \t:"), int(option[1])


class _Labels(NamedTuple):
    """Which attributes are labels."""

    columns: list[int]
    error_hint: str = ""
    """Added to errors about the value of a label, since the attribute may be none."""
    warning: str = ""


def _find_labels(source: Source, header: Header, labels: Any, xml: Any, count: int | None) -> _Labels:
    """Return which attributes are labels, from the first source that names them."""
    if labels is not None:
        return _from_argument(header, labels, source.name)
    if xml is not None:
        return _Labels(_by_name(header, read_label_names(xml), Path(xml).name, source.name))
    paths = candidates(source.path)
    xml_found = next((path for path in paths if path.exists()), None)
    if xml_found is not None:
        columns = _from_found_xml(header, xml_found, source.name)
        return _Labels(columns, warning=_warn_of_stale_count(header, columns, count, xml_found.name))
    if count is None:
        raise broken(source.name, None, _no_labels_message(source.path, paths))
    found = _by_count(header, count, source.name, f"-C {count} in the relation")
    return found._replace(warning=_warn_of_moved_columns(header, found.columns, count))


def _from_argument(header: Header, labels: Any, name: str) -> _Labels:
    if isinstance(labels, str | bytes | bool):
        raise InvalidParameter(f"labels is {labels!r}; expected a number or a list of names")
    if isinstance(labels, Iterable):
        return _Labels(_by_name(header, list(labels), name, name))
    count = operator.index(labels)
    return _by_count(header, count, name, f"labels={count}")


def _from_found_xml(header: Header, xml: Path, name: str) -> list[int]:
    try:
        return _by_name(header, read_label_names(xml), xml.name, name)
    except InvalidDataset as reason:
        hint = f"{xml.name} was read because it lies beside {name}; pass xml= or labels= if its labels are not there"
        raise InvalidDataset(f"{reason} ({hint})") from reason


def _warn_of_stale_count(header: Header, columns: list[int], count: int | None, xml: str) -> str:
    """Return a warning if `-C` contradicts the list of labels: columns may have been moved since it was written."""
    if count is None or columns == _counted(header, count):
        return ""
    return (
        f"the labels are {_shown(header, columns)}, as {xml} lists them; -C {count} in the relation, which stands "
        f"for {_shown(header, _counted(header, count))}, is ignored. Pass xml= or labels= to choose"
    )


def _warn_of_moved_columns(header: Header, columns: list[int], count: int) -> str:
    """Return a warning if only `-C` names the labels, and WEKA has moved columns since it was written."""
    moved = re.search(r"weka\.filters\.\w+\.attribute\.(Remove|Reorder)\b", header.relation)
    if moved is None:
        return ""
    return (
        f"the labels are {_shown(header, columns)}, as -C {count} in the relation says; but WEKA's filter {moved[1]} "
        f"may have moved them. Pass xml= or labels= to choose ({_other_end(count)})"
    )


def _shown(header: Header, columns: list[int]) -> str:
    """`'a', …, 'f' (6 attributes)`."""
    if not columns:
        return "no attribute"
    first, last = (repr(header.attributes[j].name[:60]) for j in (columns[0], columns[-1]))
    return f"{first}, …, {last} ({len(columns)} attributes)" if len(columns) > 1 else first


def _other_end(count: int) -> str:
    return f"labels={-count} for the {'last' if count > 0 else 'first'} {abs(count)} attributes"


def _no_labels_message(arff: Path, paths: list[Path]) -> str:
    looked_for = ", ".join(path.name for path in paths)
    others = sorted(path.name for path in arff.absolute().parent.iterdir() if path.name.lower().endswith(XML_ENDINGS))
    there = f" ({', '.join(others[:3])}{', …' if len(others) > 3 else ''} lies there)" if others else ""
    return f"no -C in the relation and none of {looked_for} beside it; pass xml={there} or labels= to name the labels"


def _counted(header: Header, count: int) -> list[int]:
    columns = range(len(header.attributes))
    return list(columns[:count] if count >= 0 else columns[count:])


def _by_count(header: Header, count: int, name: str, what: str) -> _Labels:
    n_columns = len(header.attributes)
    if not 0 < abs(count) <= n_columns:
        raise broken(name, None, f"{what} is no number of labels among {n_columns} attributes")
    error_hint = f"; {what} makes it a label: if it is none, pass xml= for a list of the labels, or {_other_end(count)}"
    return _Labels(_counted(header, count), error_hint)


def _by_name(header: Header, names: list[Any], listed_in: str, arff: str) -> list[int]:
    columns = {attribute.name: j for j, attribute in enumerate(header.attributes)}
    for name in names:
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise broken(listed_in, None, f"label {name!r} is not an attribute of {arff}{hint}")
    if not names:
        raise broken(listed_in, None, "the list of labels is empty")
    return sorted({columns[name] for name in names})


def _as_frames(bunch: Bunch, columns: Columns, pd: Any) -> Bunch:
    """Return the bunch with frames: nominal features as categories, dates as dates, and text among the features."""
    frame_of = pd.DataFrame.sparse.from_spmatrix if sparse.issparse(bunch.data) else pd.DataFrame
    numbers = frame_of(bunch.data)
    series = {}
    for j in np.flatnonzero(~columns.is_label):
        attribute = columns.attributes[j]
        if attribute.type == "string":
            series[attribute.name] = pd.Series(bunch.strings[attribute.name], dtype="string")
            continue
        column = numbers[columns.position[j]]
        if attribute.name in bunch.categories:
            codes = np.nan_to_num(np.asarray(column, np.float64), nan=-1).astype(np.int64)
            column = pd.Categorical.from_codes(codes, list(attribute.values))
        elif attribute.type == "date":
            milliseconds = np.round(np.asarray(column, np.float64) * 1000)
            known = np.isfinite(milliseconds)
            column = np.full(len(known), "NaT", "datetime64[ms]")
            column[known] = milliseconds[known].astype("datetime64[ms]")
        series[attribute.name] = column
    bunch.data = pd.DataFrame(series, index=numbers.index)
    bunch.target = pd.DataFrame(bunch.target, columns=bunch.target_names)
    bunch.feature_names = list(bunch.data.columns)
    return bunch
