"""MULAN's list of labels: an XML file beside the ARFF file that names the attributes to be predicted."""

import os
import re
from pathlib import Path
from xml.parsers import expat

from abstain.datasets._arff import Source, broken

ENDINGS = (".xml", ".xml.gz", ".xml.bz2")
PART = re.compile(r"[-_.](train|training|test|testing|valid|validation|dev)$", re.IGNORECASE)


def candidates(arff: Path) -> list[Path]:
    """Where the labels of an ARFF file are listed by convention; the parts of a split share one list."""
    stem = re.sub(r"(\.arff)?(\.gz|\.bz2)?$", "", arff.name, flags=re.IGNORECASE)
    return [arff.with_name(name + ending) for name in dict.fromkeys((stem, PART.sub("", stem))) for ending in ENDINGS]


def read_label_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of all labels in a file, whatever their hierarchy, in its order."""
    with Source(path) as source:
        name, text = source.name, source.read()
    try:
        found = _parse(name, text, None)
    except LookupError as reason:
        raise broken(name, 1, str(reason)) from reason
    except expat.ExpatError as reason:
        try:
            found = _parse(name, text, "iso-8859-1")  # some files say that they are UTF-8 and are not
        except expat.ExpatError:
            message = f"not well-formed XML ({expat.ErrorString(reason.code)})"
            raise broken(name, reason.lineno, message) from reason
    return _checked(name, found)


def _parse(name: str, text: bytes, encoding: str | None) -> list[tuple[str, int]]:
    """Each label's name and line. Entities are refused, so nothing can expand or be fetched."""
    parser = expat.ParserCreate(encoding)
    found: list[tuple[str, int]] = []
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        tag = tag.rpartition(":")[2].lower()
        if depth == 0 and tag != "labels":
            raise broken(name, parser.CurrentLineNumber, f"expected <labels>, found <{tag}>")
        depth += 1
        if tag == "label":
            if "name" not in attributes:
                raise broken(name, parser.CurrentLineNumber, "a <label> without a name")
            found.append((attributes["name"], parser.CurrentLineNumber))

    def refuse(*_: object) -> None:
        raise broken(name, parser.CurrentLineNumber, "entities are refused; a list of labels needs none")

    parser.StartElementHandler = start
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.Parse(text.lstrip(), True)
    return found


def _checked(name: str, found: list[tuple[str, int]]) -> list[str]:
    lines: dict[str, int] = {}
    for label, line in found:
        if label in lines:
            raise broken(name, line, f"label {label!r} is already on line {lines[label]}")
        lines[label] = line
    if not lines:
        raise broken(name, None, "there is no <label> in it")
    return list(lines)
