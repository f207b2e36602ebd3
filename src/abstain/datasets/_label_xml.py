"""MULAN's list of labels: an XML file beside the ARFF file that names the attributes to be predicted."""

import os
import re
from pathlib import Path
from xml.parsers import expat

from abstain.datasets._arff import Source, broken

XML_ENDINGS = (".xml", ".xml.gz", ".xml.bz2")
SPLIT_SUFFIX = re.compile(r"[-_.](train|training|test|testing|valid|validation|dev)$", re.IGNORECASE)


def candidates(arff: Path) -> list[Path]:
    """Return where the labels of an ARFF file are listed by convention; the parts of a split share one list."""
    stem = re.sub(r"(\.arff)?(\.gz|\.bz2)?$", "", arff.name, flags=re.IGNORECASE)
    return [
        arff.with_name(name + ending)
        for name in dict.fromkeys((stem, SPLIT_SUFFIX.sub("", stem)))
        for ending in XML_ENDINGS
    ]


def read_label_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of all labels in a file, whatever their hierarchy, in its order."""
    with Source(path) as source:
        name, text = source.name, source.read()
    try:
        labels = _LabelParser(name).parse(text)
    except LookupError as reason:
        raise broken(name, 1, str(reason)) from reason
    except expat.ExpatError as reason:
        try:
            labels = _LabelParser(name, "iso-8859-1").parse(text)  # some files claim to be UTF-8 and are not
        except expat.ExpatError:
            message = f"not well-formed XML ({expat.ErrorString(reason.code)})"
            raise broken(name, reason.lineno, message) from reason
    return _require_distinct(name, labels)


class _LabelParser:
    """Collect the name and the line of each label. Entities are refused, so nothing can expand or be fetched."""

    def __init__(self, name: str, encoding: str | None = None) -> None:
        self._name = name
        self._labels: list[tuple[str, int]] = []
        self._is_inside = False
        self._parser = expat.ParserCreate(encoding)
        self._parser.StartElementHandler = self._start
        self._parser.EntityDeclHandler = self._parser.SkippedEntityHandler = self._refuse

    def parse(self, text: bytes) -> list[tuple[str, int]]:
        self._parser.Parse(text.lstrip(), True)
        return self._labels

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        tag = tag.rpartition(":")[2].lower()
        if not self._is_inside and tag != "labels":
            raise broken(self._name, line, f"expected <labels>, found <{tag}>")
        self._is_inside = True
        if tag == "label":
            if "name" not in attributes:
                raise broken(self._name, line, "a <label> without a name")
            self._labels.append((attributes["name"], line))

    def _refuse(self, *_: object) -> None:
        raise broken(self._name, self._parser.CurrentLineNumber, "entities are refused; a list of labels needs none")


def _require_distinct(name: str, labels: list[tuple[str, int]]) -> list[str]:
    lines: dict[str, int] = {}
    for label, line in labels:
        if label in lines:
            raise broken(name, line, f"label {label!r} is already on line {lines[label]}")
        lines[label] = line
    if not lines:
        raise broken(name, None, "there is no <label> in it")
    return list(lines)
