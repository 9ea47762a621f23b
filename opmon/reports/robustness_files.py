"""A tomography as files and as one piece of bytes: kept as Parquet and JSON, read back to be asked again."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opmon.errors import InputError, OpmonError
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.result import Tomography
from opmon.robustness.space import Space, Tests
from opmon.types import Array, Document

TESTS, FACTS, OUTCOMES = "robustness.parquet", "robustness.json", "robustness-outcomes.npz"
FORMAT = 1
_COLUMNS = ("share", "error", "shared", "low", "high")


def write_tomography(result: Tomography, folder: Path) -> None:
    """The files: one row per test, what belongs to all of them, and what each input did where that is known."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(_table(result), folder / TESTS)
    (folder / FACTS).write_text(json.dumps(_facts(result), indent=2) + "\n", encoding="utf-8")
    (folder / OUTCOMES).unlink(missing_ok=True)
    if result.outcomes is not None:
        outcomes = {item.name: getattr(result.outcomes, item.name) for item in fields(Outcomes)}
        np.savez_compressed(folder / OUTCOMES, **{**outcomes, "values": outcomes["values"].astype(np.float16)})


def packed(result: Tomography) -> bytes:
    """The tests and what belongs to all of them in one piece, without what each input did."""
    table, content = io.BytesIO(), io.BytesIO()
    pq.write_table(_table(result), table, compression="zstd")
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(FACTS, json.dumps(_facts(result)))
        archive.writestr(TESTS, table.getvalue())
    return content.getvalue()


def unpacked(content: bytes) -> Tomography:
    """What :func:`packed` made a piece of."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return _restored(json.loads(archive.read(FACTS)), pq.read_table(pa.BufferReader(archive.read(TESTS))), None)


def read_tomography(folder: Path) -> Tomography:
    """What :func:`write_tomography` kept; nothing is run."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        table = pq.read_table(folder / TESTS)
        outcomes = _outcomes(folder / OUTCOMES)
    except FileNotFoundError as exc:
        raise InputError(
            f"there is no tomography in {folder}: {TESTS} and {FACTS} must be there; make one with 'opmon robustness "
            f"run'"
        ) from exc
    except (OSError, ValueError, KeyError, pa.ArrowInvalid, zipfile.BadZipFile) as exc:
        raise InputError(f"the tomography in {folder} cannot be read: {exc}; run it again") from exc
    try:
        return _restored(facts, table, outcomes)
    except OpmonError:
        raise
    except (KeyError, TypeError, ValueError) as exc:
        raise InputError(f"the tomography in {folder} is not whole: {exc!r}; run it again") from exc


def _outcomes(path: Path) -> Outcomes | None:
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as stored:
        values = {item.name: stored[item.name] for item in fields(Outcomes)}
    return Outcomes(**{**values, "values": values["values"].astype(np.float32)})


def _restored(facts: Document, table: pa.Table, outcomes: Outcomes | None) -> Tomography:
    if facts["format"] != FORMAT:
        raise InputError(f"the tomography is of format {facts['format']}, and this opmon reads {FORMAT}: run it again")
    space = Space(**{**facts["space"], "names": tuple(facts["space"]["names"])})
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    severities = np.stack([columns[f"severity/{name}"] for name in space.names], axis=1).astype(np.int8)
    ranks = np.stack([columns[f"place/{name}"] for name in space.names], axis=1).astype(np.int8)
    return Tomography(
        space=space,
        tests=Tests(severities, ranks),
        seen=columns["seen"].astype(np.int64),
        inputs=int(facts["inputs"]),
        effective_inputs=float(facts["effective_inputs"]),
        level=float(facts["level"]),
        reach=float(facts["reach"]),
        quality=columns.get("quality"),
        quality_error=columns.get("quality_error"),
        facts=facts["facts"],
        outcomes=outcomes,
        **{name: columns[name].astype(np.float64) for name in _COLUMNS},
    )


def _table(result: Tomography) -> pa.Table:
    names = result.space.names
    columns: dict[str, Array] = {f"severity/{name}": result.tests.severities[:, j] for j, name in enumerate(names)}
    columns |= {f"place/{name}": result.tests.ranks[:, j] for j, name in enumerate(names)}
    columns |= {name: getattr(result, name) for name in _COLUMNS}
    columns |= {"seen": result.seen, "measured": result.measured}
    if result.quality is not None and result.quality_error is not None:
        columns |= {"quality": result.quality, "quality_error": result.quality_error}
    return pa.table(columns)


def _facts(result: Tomography) -> Document:
    return {
        "format": FORMAT,
        "space": asdict(result.space),
        "inputs": result.inputs,
        "effective_inputs": result.effective_inputs,
        "level": result.level,
        "reach": result.reach,
        "inferences": result.inferences,
        "saved": result.saved,
        "facts": dict(result.facts),
    }
