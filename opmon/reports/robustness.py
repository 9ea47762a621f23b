"""A tomography as files: kept as Parquet and JSON, read back to be asked again, shown as figures and a page."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opmon.errors import InputError, OpmonError
from opmon.reports._page import data_uri, write_page
from opmon.reports.robustness_figures import curve_figure, heat_figure, voxel_figure
from opmon.reports.text import percent
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.query.named import question
from opmon.robustness.result import Answer, Tomography
from opmon.robustness.space import Space, Tests
from opmon.types import Array, Document

TESTS, FACTS, OUTCOMES = "robustness.parquet", "robustness.json", "robustness-outcomes.npz"
FORMAT = 1
_COLUMNS = ("share", "error", "shared", "low", "high")


def write_tomography(result: Tomography, folder: Path) -> None:
    """The files: one row per test, what belongs to all of them, and what each input did where that is known."""
    folder.mkdir(parents=True, exist_ok=True)
    names = result.space.names
    columns: dict[str, Array] = {f"severity/{name}": result.tests.severities[:, j] for j, name in enumerate(names)}
    columns |= {f"place/{name}": result.tests.ranks[:, j] for j, name in enumerate(names)}
    columns |= {name: getattr(result, name) for name in _COLUMNS}
    columns |= {"seen": result.seen, "measured": result.measured}
    if result.quality is not None and result.quality_error is not None:
        columns |= {"quality": result.quality, "quality_error": result.quality_error}
    pq.write_table(pa.table(columns), folder / TESTS)
    facts = {
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
    (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    (folder / OUTCOMES).unlink(missing_ok=True)
    if result.outcomes is not None:
        outcomes = {item.name: getattr(result.outcomes, item.name) for item in fields(Outcomes)}
        np.savez_compressed(folder / OUTCOMES, **{**outcomes, "values": outcomes["values"].astype(np.float16)})


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


def robustness_metrics(result: Tomography, queries: Mapping[str, str]) -> dict[str, float]:
    """MLflow metrics of a tomography: the mean over all tests, the worst test, and every saved query."""
    whole = result.ask("all")
    found = {
        "robustness/aggregate": whole.value,
        "robustness/low": whole.low,
        "robustness/high": whole.high,
        "robustness/worst": float(result.share.min()),
        "robustness/unperturbed": float(result.share[0]),
        "robustness/saved": result.saved,
    }
    for name, text in queries.items():
        answer = result.ask(text)
        found |= {
            f"robustness/query/{name}": answer.value,
            f"robustness/query/{name}.low": answer.low,
            f"robustness/query/{name}.high": answer.high,
        }
    return found


def robustness_report(
    result: Tomography, folder: Path, *, title: str, queries: Mapping[str, str], gallery: bytes | None = None
) -> Path:
    """Writes everything into ``folder``: the data, the figures, the answers, and one page that shows them."""
    write_tomography(result, folder)
    answers = {name: result.ask(text) for name, text in queries.items()}
    answers_json = {name: asdict(answer) for name, answer in answers.items()}
    (folder / "answers.json").write_text(json.dumps(answers_json, indent=2) + "\n", encoding="utf-8")
    figures = {"severity-sum.png": curve_figure(result)}
    if len(result.space.names) > 1 and result.space.highest > 1:
        figures["pairs.png"] = heat_figure(result)
    if len(result.space.names) > 2 and result.space.highest > 2:
        figures["voxels.png"] = voxel_figure(result, _three_worst(result))
    if gallery is not None:
        figures["gallery.png"] = gallery
    for name, content in figures.items():
        (folder / name).write_bytes(content)
    whole = result.ask("all", worst=10)
    return write_page(
        folder / "robustness.html",
        "robustness.html",
        title=title,
        result=result,
        whole=whole,
        answers=[_row(name, queries[name], answer) for name, answer in answers.items()],
        singles=_singles(result),
        figures={name: data_uri(content, "image/png") for name, content in figures.items()},
    )


def _three_worst(result: Tomography) -> tuple[int, int, int]:
    """The perturbations that cost most on their own, in the order of the space."""
    singles = [float(np.mean(shares)) for _, shares in _singles(result)]
    a, b, c = sorted(sorted(range(len(singles)), key=lambda j: singles[j])[:3])
    return a, b, c


def _singles(result: Tomography) -> list[tuple[str, list[float]]]:
    """Each perturbation alone: its share at every severity from 0."""
    tests, found = result.tests, []
    for j, name in enumerate(result.space.names):
        alone = ~np.delete(tests.severities, j, axis=1).any(axis=1)
        rows = np.flatnonzero(alone)
        rows = rows[np.argsort(tests.severities[rows, j])]
        found.append((name, [float(result.share[row]) for row in rows]))
    return found


def _row(name: str, text: str, answer: Answer) -> dict[str, object]:
    return {
        "name": name,
        "question": question(text),
        "value": percent(answer.value),
        "interval": f"{percent(answer.low)} to {percent(answer.high)}",
        "measured": answer.measured,
        "predicted": answer.predicted,
        "worst": answer.worst[0] if answer.worst else None,
    }
