"""Records of completed outputs: which of them were made from the same input by the same job, and need not be again."""

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
    """Return a text that identifies a job: whatever changes a decision changes it."""
    bound = penalty.bind(n_labels)
    described = type(loss).__name__, *sorted(vars(loss).items())
    return digest(*described, bound.counts, bound.slope, bound.label_costs, *settings)


def digest(*parts: Any) -> str:
    """Return a text that is another one if any of the parts is."""
    found = hashlib.sha256()
    for part in parts:
        for item in part if isinstance(part, tuple) else (part,):
            value = (item.dtype.str.encode() + item.tobytes()) if isinstance(item, np.ndarray) else repr(item).encode()
            found.update(len(value).to_bytes(8, "little") + value)
    return found.hexdigest()


def record_completion(output: Path, source: Path, job: str, summary: Summary) -> None:
    """Write beside an output which input and which job it was made from."""
    record = {"job": job, "input": _state(source), "output": _state(output), "summary": asdict(summary)}
    with atomic_write(_record_file(output)) as target:
        target.write(json.dumps(record).encode())


def find_completed(output: Path, source: Path, job: str) -> Summary | None:
    """Return the summary of an output that is there, unchanged, made from this input by this job, or None."""
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        record = json.loads(_record_file(output).read_bytes())
        if (record["job"], record["input"], record["output"]) == (job, _state(source), _state(output)):
            return Summary(**record["summary"])
    return None


def _record_file(output: Path) -> Path:
    return output.with_name(f".{output.name}.done")


def _state(file: Path) -> list[int]:
    state = file.stat()
    return [state.st_size, state.st_mtime_ns]
