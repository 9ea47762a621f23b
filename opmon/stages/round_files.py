"""The files of a round's report: its page, its failures as a dataset, its labels, what was estimated and concluded."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from opmon.adjudication import Asked
from opmon.failure_words import FailureKind, failure_kind
from opmon.problems import Problem, traits
from opmon.queries.plain import as_json
from opmon.queries.standing import as_told
from opmon.reports.estimate_figure import EstimatePoint
from opmon.reports.failures import Failure, failures_page, write_failures
from opmon.reports.labels import write_labels, write_said
from opmon.reports.measure_figures import MeasureFigure
from opmon.reports.slice_figure import slice_figure
from opmon.reports.summary import RoundSummary, round_page
from opmon.stages.captured import captured, payloads
from opmon.stages.captured import seen as seen_of
from opmon.stages.class_table import class_table
from opmon.stages.drift import summary_of
from opmon.stages.estimate import Answers
from opmon.stages.failure_pictures import draw_failures
from opmon.stages.measure_figures import measure_figures
from opmon.stages.timeline import facts_as_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import weight_of
from opmon.store import attachments
from opmon.store.plans import RoundPlan
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import Json, Verdict
from opmon.types.drifting import RoundDrift
from opmon.types.grouped import FailureGroup
from opmon.types.slicing import Sliced


def write_report(
    work: Toolbox,
    round_: Round,
    revision: Revision,
    answers: Answers,
    found: Sequence[Verdict],
    drift: RoundDrift | None,
    points: Sequence[EstimatePoint],
    parts: Sequence[Sliced],
    groups: Sequence[FailureGroup],
    folder: Path,
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = answers.failures(round_.plan)
    failures = [
        replace(failure, payload=payload)
        for failure, payload in zip(_failures(answers, round_.plan), seen_of(work, failed), strict=True)
    ]
    write_failures(failures, folder / "failures", inputs=_inputs(work, round_, failed, failures))
    failures_page(
        failures,
        folder / "failures" / "failures.html",
        title=f"What {work.name} got wrong, round {round_.number}",
        kind=kind_of(round_.plan),
        unit=round_.plan.unit or "",
        groups=groups,
        classes=class_table(round_, answers),
    )
    if groups:
        _write(groups, folder / "failures" / "groups.json")
    write_labels(answers.tasks, folder / "labels.parquet")
    write_said(work.name, answers.tasks, folder / "labels.jsonl")
    if round_.waves > 1:
        (folder / "draw.npz").write_bytes(round_.draw or b"")  # all waves of it: the first is there already
    _write(_told(revision), folder / "estimate.json")
    _write(found, folder / "verdicts.json")
    if drift is not None:
        _write(drift, folder / "drift.json")
    if parts:
        _write(parts, folder / "slices.json")
        slice_figure(parts, revision.estimate, folder / "slices.png")
    seen = payloads(work, round_, failed)
    whole = [replace(failure, payload=payload) for failure, payload in zip(failures, seen, strict=True)]
    figures = _write_measures(round_, revision, answers, folder)
    pictures, shown = draw_failures(work.settings, whole, folder / "failures" / "failures.png")
    round_page(
        RoundSummary(
            monitor=work.name,
            round=round_.number,
            model=round_.model_name,
            model_version=round_.model_version,
            facts=facts_as_of(round_, revision, answers.tasks),
            estimate=revision.estimate,
            quantity=revision.estimate.quantity,
            measures=revision.further,
            measure_figures=figures,
            unit=round_.plan.unit or "",
            kind=kind_of(round_.plan),
            verdicts=as_told(work.settings.watch.advising_rules, found),
            started_at=round_.starts_at,
            ended_at=round_.ends_at,
            sampler=round_.plan.sampler,
            design=_design(round_),
            points=points,
            threshold=work.settings.threshold,
            failures=failures,
            groups=groups,
            pictures=pictures,
            pictures_shown=shown,
            drift=summary_of(round_.drift),
            drift_words=() if drift is None else drift.words,
            corrected=revision.corrected,
            slices=parts,
        ),
        folder / "round.html",
    )


def _inputs(work: Toolbox, round_: Round, failed: Sequence[Asked], failures: Sequence[Failure]) -> pa.Table | None:
    """The failed inputs as the log had them, in the order of the failures; None where that is not kept, or erased."""
    if not failed or any(attachments.is_erased(failure.payload) for failure in failures):
        return None
    positions = np.array([task.position for task in failed])
    ordered, places = np.unique(positions, return_inverse=True)
    rows = captured(work, round_, ordered)
    return None if rows is None else rows.take(pa.array(places))


def _write_measures(round_: Round, revision: Revision, answers: Answers, folder: Path) -> list[MeasureFigure]:
    """The measures beside the main one as plain values, and those that are pictures."""
    if not revision.further:
        return []
    _write(revision.further, folder / "measures.json")
    figures = measure_figures(round_, answers)
    for figure in figures:
        (folder / f"{figure.name}.png").write_bytes(figure.content)
    return figures


def _write(told: object, path: Path) -> None:
    path.write_text(f"{as_json(told)}\n", encoding="utf-8")


def _told(revision: Revision) -> dict[str, Json]:
    """The estimate as plain values."""
    estimate = revision.estimate
    told = asdict(estimate) | {"quantity": estimate.quantity.name, "unit": estimate.quantity.unit}
    if revision.corrected is not None:
        told["corrected"] = asdict(revision.corrected)
    return told | {"revision": revision.revision, "made_at": revision.made_at.isoformat()}


def kind_of(plan: RoundPlan) -> FailureKind:
    """What the failures of a round are."""
    return failure_kind(plan.problem, plan.tolerance, plan.scale)


def _failures(answers: Answers, plan: RoundPlan) -> list[Failure]:
    weights = weight_of(answers.sample)
    return [
        _failure(task, None if weights is None else weights[task.position], plan.problem)
        for task in answers.failures(plan)
    ]


def _failure(task: Asked, weight: float | None, problem: Problem) -> Failure:
    numbers = traits(problem).of_numbers
    return Failure(
        input_id=task.input_id,
        truth=task.truth or "",
        prediction=task.prediction,
        confidence=None if "confidence" not in task.variables else 1 - task.variables["confidence"],
        error=abs(float(task.truth) - float(task.prediction)) if numbers and task.truth else None,
        weight=None if weight is None else max(weight, 1e-9),
        annotators=task.annotators,
        payload=task.payload,
        problem=problem,
    )


def _design(round_: Round) -> dict[str, Json]:
    plan = round_.plan
    return {"budget": plan.budget, **plan.parameters, "seed": plan.seed, "frame": round_.inputs}
