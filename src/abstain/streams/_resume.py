"""Which outputs are there already, whole and made of the same input by the same job: what need not be done again."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from abstain._core.losses import Loss
from abstain._core.penalties import Penalty
from abstain._utils.atomic import atomic_write
from abstain.streams._summary import Summary


def fingerprint(loss: Loss, penalty: Penalty, n_labels: int, *settings: Any) -> str:
    """A text that tells jobs apart: whatever changes a decision changes it."""
    bound = penalty.bind(n_labels)
    parts = [type(loss).__name__, *sorted(vars(loss).items()), bound.counts, bound.slope, bound.label_costs, *settings]
    digest = hashlib.sha256()
    for part in parts:
        for item in part if isinstance(part, tuple) else (part,):
            value = (item.dtype.str.encode() + item.tobytes()) if isinstance(item, np.ndarray) else repr(item).encode()
            digest.update(len(value).to_bytes(8, "little") + value)
    return digest.hexdigest()


def keep_mark(output: Path, made_of: Path, job: str, summary: Summary) -> None:
    """Note beside an output what it was made of."""
    note = {"job": job, "input": _state(made_of), "output": _state(output), "summary": asdict(summary)}
    with atomic_write(_mark(output)) as target:
        target.write(json.dumps(note).encode())


def find_mark(output: Path, made_of: Path, job: str) -> Summary | None:
    """What was said of an output that is there, unchanged, made of this input by this job; None if it is not."""
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        note = json.loads(_mark(output).read_bytes())
        if (note["job"], note["input"], note["output"]) == (job, _state(made_of), _state(output)):
            return Summary(**note["summary"])
    return None


def _mark(output: Path) -> Path:
    return output.with_name(f".{output.name}.done")


def _state(file: Path) -> list[int]:
    state = file.stat()
    return [state.st_size, state.st_mtime_ns]
