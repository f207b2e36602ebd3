"""ARFF files, plain or compressed, read in one pass: the header, then the rows as tokens, a chunk at a time.

The grammar is WEKA's, except that what WEKA would skip over in silence (in a dense row, a value left out between two
commas; in a sparse one, an index without a value) is an error.

Why not an existing reader: scipy's knows neither sparse rows nor strings, liac-arff neither dates nor comments after a
row, and neither of them WEKA's blanks between values. Both make a Python object of every value, which on dense files
takes about eight times as long.
"""

import bz2
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset
from abstain.datasets import _tokens
from abstain.datasets._dates import DEFAULT_DATE

BATCH_BYTES = 1 << 20

NUMERIC_TYPES: Final = ("numeric", "real", "integer")
ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def broken(name: str, line: int | None, message: str) -> InvalidDataset:
    """Return an error with the name of the file and the line."""
    return InvalidDataset(f"{name}: {message}" if line is None else f"{name}, line {line}: {message}")


def decode(text: bytes) -> str:
    """Decode UTF-8, or else Latin-1, in which every sequence of bytes is text."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def unescape(text: str) -> str:
    """Return the text between two quotation marks, without its backslashes."""
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text) if "\\" in text else text


class Source:
    """The bytes of a file, decompressed if it begins so; `position` counts compressed bytes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.name = self.path.name
        self._file: IO[bytes] = self.path.open("rb")
        magic = self._file.read(3)
        self._file.seek(0)
        self._stream: Any = self._file
        if magic[:2] == b"\x1f\x8b":
            self._stream = gzip.GzipFile(fileobj=self._file)
        elif magic == b"BZh":
            self._stream = bz2.BZ2File(self._file)
        self.size = self.path.stat().st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stream.close()
        self._file.close()

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.tell()

    def read(self, n_bytes: int = -1) -> bytes:
        """Return the next bytes; none at the end."""
        try:
            return self._stream.read(n_bytes)
        except EOFError as reason:
            raise broken(self.name, None, "the compressed file is cut off before its end") from reason
        except (OSError, zlib.error) as reason:
            raise broken(self.name, None, f"the compressed file is broken ({reason})") from reason

    def blocks(self) -> Iterator[bytes]:
        """Iterate over complete lines, about `BATCH_BYTES` at a time, without the byte order mark."""
        block = self.read(max(BATCH_BYTES, 4)).removeprefix(b"\xef\xbb\xbf")  # four bytes, so that the mark is not all
        unfinished: list[bytes] = []  # pieces of a line, joined once: it may be long
        while block:
            # a lone carriage return ends a line too, unless a line feed might still follow
            cut = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, -1) + 1
            if cut:
                yield b"".join([*unfinished, block[:cut]])
                unfinished = []
            unfinished.append(block[cut:])
            block = self.read(BATCH_BYTES)
        if rest := b"".join(unfinished):
            yield rest + b"\n"


@dataclass(frozen=True)
class Attribute:
    """A column: its name, its type, the values it declares (nominal) or its pattern (date), and the line it is on."""

    name: str
    type: str
    line: int
    values: tuple[str, ...] = ()
    pattern: str = DEFAULT_DATE

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The declared values if all of them are finite numbers, and different ones."""
        try:
            numbers = tuple(map(number, self.values))
        except ValueError:
            return None
        return numbers if len(set(numbers)) == len(numbers) and np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class Header:
    """The part of a file before the rows."""

    relation: str
    attributes: tuple[Attribute, ...]
    first_data_line: int


def number(text: str) -> float:
    """Return the number that a text is, in Python's grammar, but without underscores and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


class _Statement:
    """A header line, parsed from left to right."""

    TOKEN = re.compile(
        r"""[\x00-\x20,]*(?:
            (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
            |(?P<unterminated>['"].*)
            |(?P<end>%.*|$)
            |(?P<brace>[{}])
            |(?P<word>[^\x00-\x20,%{}]+))""",
        re.VERBOSE,
    )
    NAME = re.compile(r"[\x00-\x20]*(?P<word>[^\x00-\x20%{'\"][^\x00-\x20%{]*)")

    def __init__(self, name: str, line: int, text: str) -> None:
        self.name, self.line, self.text, self.at = name, line, text, 0

    def next(self, pattern: re.Pattern[str] = TOKEN) -> tuple[str, str]:
        """Return the kind and the text of the next token; at the end of the line, kind "end"."""
        match = pattern.match(self.text, self.at) or self.TOKEN.match(self.text, self.at)
        assert match is not None  # TOKEN matches whatever there is
        self.at = match.end()
        kind = str(match.lastgroup)
        if kind == "unterminated":
            raise broken(self.name, self.line, f"the quote {match[kind]} has no end")
        return kind, unescape(match[kind][1:-1]) if kind == "quoted" else match[kind]

    def relation(self) -> str:
        """Return a quoted name, or everything up to a comment: names with options are not always quoted."""
        kind, name = self.next(re.compile(r"[\x00-\x20]*(?P<word>[^%'\"\x00-\x20][^%]*)"))
        return "" if kind == "end" else name.strip()

    def attribute(self) -> Attribute:
        """Return the attribute that the rest of the line declares."""
        kind, name = self.next(self.NAME)
        if kind not in ("quoted", "word"):
            raise broken(self.name, self.line, "@attribute without a name")
        kind, what = self.next()
        if (kind, what) == ("brace", "{"):
            return Attribute(name, "nominal", self.line, self._declared(name))
        low = what.lower()
        if kind == "word" and low in NUMERIC_TYPES:
            return Attribute(name, "numeric", self.line)
        if kind == "word" and low == "string":
            return Attribute(name, "string", self.line)
        if kind == "word" and low == "date":
            kind, pattern = self.next()
            return Attribute(name, "date", self.line, pattern=pattern if kind in ("quoted", "word") else DEFAULT_DATE)
        if kind == "word" and low == "relational":
            raise broken(self.name, self.line, f"attribute {name!r} is relational, which is not supported")
        problem = f"the type of attribute {name!r} is missing" if kind == "end" else f"unknown type {what!r}"
        raise broken(self.name, self.line, f"{problem}; expected numeric, {{…}}, string or date")

    def _declared(self, name: str) -> tuple[str, ...]:
        values: dict[str, None] = {}
        while (token := self.next()) != ("brace", "}"):
            kind, value = token
            if kind not in ("quoted", "word"):
                raise broken(self.name, self.line, f"the values of attribute {name!r} are not closed by '}}'")
            if value in values:
                raise broken(self.name, self.line, f"attribute {name!r} declares the value {value!r} twice")
            values[value] = None
        if not values:
            raise broken(self.name, self.line, f"attribute {name!r} declares no value")
        return tuple(values)


def read_header(name: str, blocks: Iterator[bytes]) -> tuple[Header, Iterator[bytes]]:
    """Return the header, and the blocks of lines after it."""
    relation = ""
    attributes: dict[str, Attribute] = {}
    line = 0
    for block in blocks:
        at = 0
        for raw in block.splitlines(keepends=True):
            at += len(raw)
            line += 1
            statement = _Statement(name, line, decode(raw))
            kind, keyword = statement.next()
            if kind == "end":
                continue
            low = keyword.lower()
            if low == "@relation":
                relation = statement.relation()
            elif low == "@attribute":
                new = statement.attribute()
                if old := attributes.get(new.name):
                    raise broken(name, line, f"attribute {new.name!r} is already declared on line {old.line}")
                attributes[new.name] = new
            elif low == "@data":
                if statement.next()[0] != "end":
                    raise broken(name, line, "@data must stand alone; the rows begin on the next line")
                if not attributes:
                    raise broken(name, line, "@data, but no @attribute before it")
                return Header(relation, tuple(attributes.values()), line + 1), chain([block[at:]], blocks)
            else:
                shown = decode(raw).strip()[:60]
                raise broken(name, line, f"expected @relation, @attribute or @data, found {shown!r}")
    raise broken(name, None, "there is no @data; is this an ARFF file, and all of it?")


@dataclass(frozen=True)
class Rows:
    """Rows as tokens: field k is text[start[k]:stop[k]], row i has the fields first[i] … first[i + 1] − 1."""

    text: bytes
    sparse: bool
    first: NDArray[np.int64]
    lines: NDArray[np.int64]
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    value: NDArray[np.float64]
    kind: NDArray[np.uint8]
    column: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lines)

    def row(self, field: int) -> int:
        """Return the row that a field is in."""
        return int(np.searchsorted(self.first, field, side="right")) - 1

    def shown(self, field: int) -> str:
        """Return a field as error messages show it."""
        return repr(decode(self.text[self.start[field] : self.stop[field]])[:60])


def read_rows(name: str, header: Header, blocks: Iterator[bytes]) -> Iterator[Rows]:
    """Iterate over the data section, a batch of complete rows at a time, whose arrays the next batch overwrites.

    The first of several errors is raised: the rows before a row that cannot be read are given first.
    """
    line, layout = header.first_data_line, _tokens.UNKNOWN
    size = -1
    for block in blocks:
        text = np.frombuffer(block, np.uint8)
        if len(text) > size:
            size = len(text)
            capacity = size // 2 + 2  # a field and its separator take two bytes
            start, stop, column = (np.empty(capacity, np.int32) for _ in range(3))
            value, kind = np.empty(capacity, np.float64), np.empty(capacity, np.uint8)
            first, lines = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        n_rows, line, layout, problem, at, detail = _tokens.tokenize(
            text, line, layout, len(header.attributes), start, stop, value, kind, column, first, lines
        )
        if n_rows:
            n_fields = first[n_rows]
            yield Rows(
                text=block,
                sparse=layout == _tokens.SPARSE,
                first=first[: n_rows + 1],
                lines=lines[:n_rows],
                start=start[:n_fields],
                stop=stop[:n_fields],
                value=value[:n_fields],
                kind=kind[:n_fields],
                column=column[:n_fields],
            )
        if problem != _tokens.NO_PROBLEM:
            raise broken(name, line, _explain(problem, block, at, detail, header))


def _explain(problem: int, text: bytes, at: int, detail: int, header: Header) -> str:
    rest = re.match(rb"[^\r\n]*", text[at:])
    assert rest is not None
    line = decode(rest[0])
    word = re.split(r"[\x00-\x20,{}%]", line, maxsplit=1)[0]
    columns = len(header.attributes)
    kinds = ("sparse", "dense") if line.startswith("{") else ("dense", "sparse")
    return {
        _tokens.OTHER_KIND: "a {} row, but the rows before it are {}".format(*kinds),
        _tokens.EMPTY_VALUE: "there is nothing before a comma; a missing value is written ?",
        _tokens.UNTERMINATED_QUOTE: f"the quote {line[:60]} has no end",
        _tokens.TEXT_AFTER_QUOTE: f"{word!r} follows a closing quote without a comma or blank",
        _tokens.WRONG_COUNT: f"found {detail} values, expected {columns}",
        _tokens.WEIGHT: "instance weights are not supported",
        _tokens.STRAY_BRACE: f"unexpected {line[:1]!r}; a text with braces must be quoted",
        _tokens.BAD_INDEX: f"{word!r} is not an index; expected {{index value, …}}",
        _tokens.INDEX_OUT_OF_RANGE: f"index {word} is out of range, there are {columns} attributes (0 … {columns - 1})",
        _tokens.INDEX_NOT_INCREASING: f"index {word} is out of order; indices must increase, and none may come twice",
        _tokens.NO_VALUE: f"there is no value after index {detail}",
        _tokens.UNCLOSED_ROW: "the row is not closed by '}'; is the file cut off?",
        _tokens.TEXT_AFTER_ROW: f"{line[:60]!r} follows the closing '}}'",
    }[problem]
