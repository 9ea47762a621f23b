"""A tomography as its report: files, figures, answers, and a page that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from opmon.reports._page import data_uri, write_page
from opmon.reports.robustness_figures import curve_figure, heat_figure, voxel_figure
from opmon.reports.robustness_files import write_tomography
from opmon.reports.text import percent
from opmon.robustness.query.named import question
from opmon.robustness.result import Answer, Tomography
from opmon.types import Json


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


def robustness_summary(result: Tomography, queries: Mapping[str, str]) -> dict[str, Json]:
    """What a tomography came to, for its history: the mean over all tests, the worst test, every saved query."""
    whole = result.ask("all", worst=1)
    answers = {name: result.ask(text, worst=0) for name, text in queries.items()}
    return {
        "names": list(result.space.names),
        "relation": str(result.facts.get("relation", "")),
        "tests": len(result.tests),
        "measured": whole.measured,
        "inputs": result.inputs,
        "saved": result.saved,
        "unperturbed": float(result.share[0]),
        "level": result.level,
        "value": whole.value,
        "low": whole.population_low,
        "high": whole.population_high,
        "worst": {"test": whole.worst[0].label, "share": whole.worst[0].share},
        "queries": {
            name: {"question": queries[name], "value": each.value, "low": each.low, "high": each.high}
            for name, each in answers.items()
        },
    }


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
