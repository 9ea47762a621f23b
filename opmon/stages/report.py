"""estimated → closed: tell MLflow. Everything written has a fixed place, so that telling twice is telling once."""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from opmon.adjudication import Asked
from opmon.problems import traits
from opmon.quantities import Quantity
from opmon.queries.plain import plain
from opmon.queries.standing import as_told
from opmon.reports.estimate_figure import EstimatePoint, estimate_figure
from opmon.reports.failure_words import FailureKind
from opmon.reports.failures import Failure, failures_page, write_failures
from opmon.reports.labels import write_labels
from opmon.reports.measure_figures import MeasureFigure
from opmon.reports.slice_figure import slice_figure
from opmon.reports.summary import RoundSummary, round_page
from opmon.stages.captured import payloads
from opmon.stages.captured import seen as seen_of
from opmon.stages.class_table import class_table
from opmon.stages.decide import is_decided
from opmon.stages.drift import summary_of
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.failure_groups import group_failures
from opmon.stages.failure_pictures import draw_failures
from opmon.stages.measure_figures import measure_figures
from opmon.stages.packages import installed
from opmon.stages.points import estimate_points
from opmon.stages.rolling import log_rolling
from opmon.stages.timeline import facts_as_of, model_of, tell_estimate
from opmon.stages.tomography import map_round, tomography_metrics
from opmon.stages.toolbox import Toolbox
from opmon.stages.version_tags import set_tags, tag_round
from opmon.stages.weights import weight_of
from opmon.store import grouped, revisions, rounds, sliced, verdicts
from opmon.store.plans import RoundPlan
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.types import Json, Verdict
from opmon.types.grouped import FailureGroup
from opmon.types.slicing import Sliced

log = logging.getLogger(__name__)


def report_round(work: Toolbox, round_: Round) -> bool:
    """Log the newest revision of a round; a final one closes the round once the rules have judged it.

    False where it was not told.

    It is not where answers have come in since: the round is estimated again first. To tell other counts under the same
    revision after a kill is more than MLflow takes.
    """
    with work.store.read() as connection:
        revision = revisions.latest_estimate(connection, round_.id)
        answers = read_answers(connection, round_)
        found = verdicts.latest_verdicts(connection, round_.id)
        decided = revision is not None and is_decided(work, connection, round_, revision)
        parts = sliced.of(connection, [revision.key]).get(revision.key, ()) if revision is not None else ()
    if revision is None or round_.run_id is None or round_.timeline_run_id is None:
        return False
    if answers.labels_seen != revision.labels_seen and answers.returned:
        return False
    tell_estimate(work, round_, revision, answers)
    groups: tuple[FailureGroup, ...] = ()
    if not revision.estimate.provisional:
        folder = work.round_folder(round_) / "report"
        log_rolling(work, round_, revision, model_of(work, round_))
        with work.store.read() as connection:
            points = estimate_points(work, connection, revision.estimate.quantity)
        groups = group_failures(work, round_, answers)
        _write_report(work, round_, revision, answers, found, points, parts, groups, folder)
        if decided and round_.state != RoundState.CLOSED:
            _map_robustness(work, round_, folder / "robustness")
        work.registry.log_artifacts(round_.run_id, folder)
        _figure(work, round_, revision.estimate.quantity, points, folder.parent)
        work.registry.log_params(round_.run_id, _parameters(round_))
        work.registry.finish_run(round_.run_id)
        tag_round(work, round_, revision)
    closing = decided and not revision.estimate.provisional
    with work.write() as connection:
        closed = {"state": "closed", "closed_at": work.clock()} if closing else {}
        told = {} if not decided else {"problem": None}  # one that waits for its verdicts says so
        grouped.put(connection, revision.key, groups)
        rounds.update(connection, round_.id, reported=revision.revision, **told, **closed)
    if closing:
        shutil.rmtree(work.round_folder(round_), ignore_errors=True)  # MLflow has it all now
    return True


def _figure(work: Toolbox, round_: Round, quantity: Quantity, points: Sequence[EstimatePoint], folder: Path) -> None:
    """The history of what is estimated, in the timeline's run."""
    path = folder / f"{quantity.key}.png"
    title = f"{quantity.caption} of {work.name} in production"
    estimate_figure(points, path, quantity=quantity, threshold=_threshold(work), title=title)
    work.registry.log_artifact(round_.timeline_run_id or "", path)


def _map_robustness(work: Toolbox, round_: Round, folder: Path) -> None:
    """The tomography that is due with this round: its report goes with the round's, its numbers to the timeline."""
    result = map_round(work, round_, folder)
    if result is None or work.settings.robustness is None:
        return
    metrics = tomography_metrics(result, work.settings.robustness)
    at = round_.ends_at or round_.opened_at
    for run, model in ((round_.timeline_run_id, work.model(round_)), (round_.run_id, None)):
        work.registry.log_metrics(run or "", metrics, round_.number, at, model=model)
    tags = {"robustness": metrics["robustness/aggregate"]}
    for name in work.settings.robustness.questions:
        if f"robustness/query/{name}" in metrics:
            tags[f"robustness.{name}"] = metrics[f"robustness/query/{name}"]
    set_tags(work, work.model(round_), {name: f"{value:.4f}" for name, value in tags.items()})


def _write_report(
    work: Toolbox,
    round_: Round,
    revision: Revision,
    answers: Answers,
    found: Sequence[Verdict],
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
    write_failures(failures, folder / "failures")
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
        told = json.dumps([asdict(each) for each in groups], indent=2, ensure_ascii=False)
        (folder / "failures" / "groups.json").write_text(told + "\n", encoding="utf-8")
    write_labels(answers.tasks, folder / "labels.parquet")
    (folder / "draw.npz").write_bytes(round_.draw or b"")  # all waves of it
    (folder / "estimate.json").write_text(json.dumps(_told(revision), indent=2) + "\n")
    (folder / "verdicts.json").write_text(json.dumps([asdict(verdict) for verdict in found], indent=2) + "\n")
    if parts:
        (folder / "slices.json").write_text(json.dumps([asdict(each) for each in parts], indent=2) + "\n")
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
            threshold=_threshold(work),
            failures=failures,
            groups=groups,
            pictures=pictures,
            pictures_shown=shown,
            drift=summary_of(round_.drift),
            corrected=revision.corrected,
            slices=parts,
        ),
        folder / "round.html",
    )


def _write_measures(round_: Round, revision: Revision, answers: Answers, folder: Path) -> list[MeasureFigure]:
    """The measures beside the main one as plain values, and those that are pictures."""
    if not revision.further:
        return []
    (folder / "measures.json").write_text(json.dumps([plain(each) for each in revision.further], indent=2) + "\n")
    figures = measure_figures(round_, answers)
    for figure in figures:
        (folder / f"{figure.name}.png").write_bytes(figure.content)
    return figures


def _told(revision: Revision) -> dict[str, Json]:
    """The estimate as plain values; a bound that there is none of is null."""
    estimate = revision.estimate
    told = asdict(estimate) | {"quantity": estimate.quantity.name, "unit": estimate.quantity.unit}
    told |= {name: None for name in ("low", "high") if math.isinf(told[name])}
    if revision.corrected is not None:
        told["corrected"] = asdict(revision.corrected)
    return told | {"revision": revision.revision, "made_at": revision.made_at.isoformat()}


def kind_of(plan: RoundPlan) -> FailureKind:
    """What the failures of a round are: the sentences about them differ."""
    holds = traits(plan.problem)
    if holds.of_numbers:
        return "largest errors" if plan.tolerance is None else "errors"
    if holds.compares:
        return "wrong"
    return "fails" if plan.scale == "pass_fail" else "low scores"


def _failures(answers: Answers, plan: RoundPlan) -> list[Failure]:
    weights, numbers = weight_of(answers.sample), traits(plan.problem).of_numbers
    return [
        _failure(task, None if weights is None else weights[task.position], numbers) for task in answers.failures(plan)
    ]


def _failure(task: Asked, weight: float | None, numbers: bool) -> Failure:
    return Failure(
        input_id=task.input_id,
        truth=task.truth or "",
        prediction=task.prediction,
        confidence=None if "confidence" not in task.variables else 1 - task.variables["confidence"],
        error=abs(float(task.truth) - float(task.prediction)) if numbers and task.truth else None,
        weight=None if weight is None else max(weight, 1e-9),
        annotators=task.annotators,
        payload=task.payload,
    )


def _design(round_: Round) -> dict[str, Json]:
    plan = round_.plan
    return {"budget": plan.budget, **plan.parameters, "seed": plan.seed, "frame": round_.inputs}


def _parameters(round_: Round) -> dict[str, Json]:
    plan = round_.plan
    sampler = {f"sampler/{name}": value for name, value in plan.parameters.items()}
    return {
        "sampler": plan.sampler,
        "budget": plan.budget,
        "level": plan.level,
        **({} if plan.main is None else {"main": plan.main}),
        "seed": plan.seed,
        "frame_size": round_.inputs,
        "model_version": round_.model_version,
        **sampler,
        **{f"version/{name}": version for name, version in installed().items()},
    }


def _threshold(work: Toolbox) -> float | None:
    """The line to draw into the figure: that of the first rule on the main measure which has one."""
    main = work.settings.quantity.name
    of_main = (each.plugin for each in work.settings.rules if work.settings.watched(each.plugin.watches()).key == main)
    lines = (rule.line() for rule in of_main)
    return next((line for line in lines if line is not None), None)
