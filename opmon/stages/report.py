"""estimated → closed: tell MLflow. Everything written has a fixed place, so that telling twice is telling once."""

from __future__ import annotations

import base64
import json
import logging
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from opmon.errors import ModelError, NotFoundError
from opmon.quantities import Quantity
from opmon.reports.estimate_figure import EstimatePoint, estimate_figure
from opmon.reports.failures import Failure, failures_page, write_failures
from opmon.reports.labels import write_labels
from opmon.reports.pictures import picture_grid
from opmon.reports.summary import RoundSummary, round_page
from opmon.reports.timeline import RoundFacts, timeline_metrics
from opmon.stages.decide import is_decided
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.packages import installed
from opmon.stages.points import estimate_points
from opmon.stages.rolling import log_rolling
from opmon.stages.standing import standing_of
from opmon.stages.tomography import map_round, tomography_metrics
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import weight_of
from opmon.store import revisions, rounds, verdicts
from opmon.store.queue import Answered
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.types import ModelVersion, Verdict

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
    if revision is None or round_.run_id is None or round_.timeline_run_id is None:
        return False
    if answers.labels_seen != revision.labels_seen and answers.returned:
        return False
    facts = _facts(round_, revision, answers)
    _log_metrics(work, round_, revision, facts)
    if not revision.estimate.provisional:
        folder = work.round_folder(round_) / "report"
        log_rolling(work, round_, _model(work, round_))
        with work.store.read() as connection:
            points = estimate_points(work, connection, revision.estimate.quantity)
        _write_report(work, round_, revision, answers, facts, found, points, folder)
        if decided and round_.state != "closed":
            _map_robustness(work, round_, folder / "robustness")
        work.registry.log_artifacts(round_.run_id, folder)
        _figure(work, round_, revision.estimate.quantity, points, folder.parent)
        work.registry.log_params(round_.run_id, _parameters(round_))
        work.registry.finish_run(round_.run_id)
        _tag_version(work, round_, revision)
    closing = decided and not revision.estimate.provisional
    with work.write() as connection:
        closed = {"state": "closed", "closed_at": work.clock()} if closing else {}
        told = {} if not decided else {"problem": None}  # one that waits for its verdicts says so
        rounds.update(connection, round_.id, reported=revision.revision, **told, **closed)
    if closing:
        shutil.rmtree(work.round_folder(round_), ignore_errors=True)  # MLflow has it all now
    return True


def _figure(work: Toolbox, round_: Round, quantity: Quantity, points: Sequence[EstimatePoint], folder: Path) -> None:
    """The history of what is estimated, in the timeline's run."""
    path = folder / f"{quantity.key}.png"
    title = f"{quantity.name.capitalize()} of {work.name} in production"
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
    tags = {"opmon.robustness": metrics["robustness/aggregate"]}
    for name in work.settings.robustness.questions:
        if f"robustness/query/{name}" in metrics:
            tags[f"opmon.robustness.{name}"] = metrics[f"robustness/query/{name}"]
    work.registry.tag_version(work.model(round_), {name: f"{value:.4f}" for name, value in tags.items()})


def _facts(round_: Round, revision: Revision, answers: Answers) -> RoundFacts:
    return RoundFacts(
        received=round_.received,
        unscorable=round_.unscorable or 0,
        duplicates=round_.duplicates or 0,
        asked=len(answers.tasks),
        returned=answers.returned,
        failures=min(revision.failures, answers.returned),
        skew=round_.skew,
        drift=(round_.drift or {}).get("share"),
    )


def _log_metrics(work: Toolbox, round_: Round, revision: Revision, facts: RoundFacts) -> None:
    metrics = timeline_metrics(revision.estimate, facts)
    at = (round_.ends_at or round_.opened_at) + timedelta(milliseconds=revision.revision)
    work.registry.log_metrics(round_.timeline_run_id or "", metrics, round_.number, at, model=_model(work, round_))
    if not revision.estimate.provisional:
        work.registry.log_metrics(round_.run_id or "", metrics, round_.number, at)


def _model(work: Toolbox, round_: Round) -> ModelVersion | None:
    """The model version, unless it was deleted while the labels came in."""
    try:
        return work.model(round_)
    except (NotFoundError, ModelError) as exc:
        log.warning("round %d of %s is told without its model version: %s", round_.number, work.name, exc)
        return None


def _write_report(
    work: Toolbox,
    round_: Round,
    revision: Revision,
    answers: Answers,
    facts: RoundFacts,
    found: Sequence[Verdict],
    points: Sequence[EstimatePoint],
    folder: Path,
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failures = _failures(answers)
    write_failures(failures, folder / "failures")
    failures_page(
        failures, folder / "failures" / "failures.html", title=f"What {work.name} got wrong, round {round_.number}"
    )
    write_labels(answers.tasks, folder / "labels.parquet")
    (folder / "draw.npz").write_bytes(round_.draw or b"")  # all waves of it
    (folder / "estimate.json").write_text(json.dumps(_told(revision), indent=2) + "\n")
    (folder / "verdicts.json").write_text(json.dumps([asdict(verdict) for verdict in found], indent=2) + "\n")
    pictures, shown = _pictures(work, failures, folder / "failures" / "failures.png")
    round_page(
        RoundSummary(
            monitor=work.name,
            round=round_.number,
            model=round_.model_name,
            model_version=round_.model_version,
            facts=facts,
            estimate=revision.estimate,
            quantity=revision.estimate.quantity,
            verdicts=found,
            started_at=round_.starts_at,
            ended_at=round_.ends_at,
            sampler=round_.plan["sampler"],
            design=_design(round_),
            points=points,
            threshold=_threshold(work),
            failures=failures,
            pictures=pictures,
            pictures_shown=shown,
        ),
        folder / "round.html",
    )


def _told(revision: Revision) -> dict[str, Any]:
    """The estimate as plain values; a bound that there is none of is null."""
    estimate = revision.estimate
    told = asdict(estimate) | {"quantity": estimate.quantity.name, "unit": estimate.quantity.unit}
    told |= {name: None for name in ("low", "high") if math.isinf(told[name])}
    return told | {"revision": revision.revision, "made_at": revision.made_at.isoformat()}


def _failures(answers: Answers) -> list[Failure]:
    weights = weight_of(answers.sample)
    return [_failure(task, None if weights is None else weights[task.position]) for task in answers.failures]


def _failure(task: Answered, weight: float | None) -> Failure:
    said = task.answer
    return Failure(
        input_id=task.input_id,
        truth=(said.truth if said else None) or "",
        prediction=task.prediction,
        confidence=None if "confidence" not in task.variables else 1 - task.variables["confidence"],
        weight=None if weight is None else max(weight, 1e-9),
        annotators=said.annotators if said else (),
        payload=task.payload,
    )


def _pictures(work: Toolbox, failures: Sequence[Failure], path: Path) -> tuple[bytes | None, int]:
    """The failures as pictures, where the inputs are pictures."""
    column = work.settings.columns.image or work.settings.inputs.tensor or _only_list(failures)
    images = [failure.payload.get(column) for failure in failures] if column else []
    if not images or not all(_is_picture(image) for image in images):
        return None, 0
    raw = [_decoded(image) for image in images]
    shown = picture_grid(raw, [failure.caption for failure in failures], path)
    return path.read_bytes(), shown


def _only_list(failures: Sequence[Failure]) -> str | None:
    lists = [name for name, value in failures[0].payload.items() if isinstance(value, list)] if failures else []
    return lists[0] if len(lists) == 1 else None


def _is_picture(value: Any) -> bool:
    if isinstance(value, dict):
        return "base64" in value
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], list) or (len(value) >= 64 and round(len(value) ** 0.5) ** 2 == len(value))


def _decoded(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def _design(round_: Round) -> dict[str, Any]:
    plan = round_.plan
    return {"budget": plan["budget"], **plan["parameters"], "seed": plan["seed"], "frame": round_.inputs}


def _parameters(round_: Round) -> dict[str, Any]:
    plan = round_.plan
    sampler = {f"sampler/{name}": value for name, value in plan["parameters"].items()}
    return {
        "sampler": plan["sampler"],
        "budget": plan["budget"],
        "level": plan["level"],
        "seed": plan["seed"],
        "frame_size": round_.inputs,
        "model_version": round_.model_version,
        **sampler,
        **{f"version/{name}": version for name, version in installed().items()},
    }


def _threshold(work: Toolbox) -> float | None:
    """The line to draw into the figure: that of the first rule on the accuracy."""
    lines = [
        getattr(rule.plugin, "threshold", None)
        for rule in work.settings.rules
        if rule.type in ("accuracy_below", "accuracy_level")
    ]
    return lines[0] if lines else None


def _tag_version(work: Toolbox, round_: Round, revision: Revision) -> None:
    """How the model version does, on the version itself; setting a tag fires MLflow's own webhooks."""
    with work.store.read() as connection:
        if revisions.newest_estimated(connection, work.name, round_.model) != round_.number:
            return
        standing = standing_of(connection, work.settings, round_.model)
    model = _model(work, round_)
    if model is None:
        return
    estimate = revision.estimate
    key = f"opmon.{estimate.quantity.key}"
    tags = {
        "opmon.status": standing,
        key: f"{estimate.value:.4f}",
        f"{key}.low": f"{estimate.low:.4f}",
        f"{key}.high": f"{estimate.high:.4f}",
        "opmon.round": str(round_.number),
        "opmon.monitor": work.name,
    }
    try:
        work.registry.tag_version(model, tags)
    except NotFoundError as exc:
        log.warning("%s is not there to be tagged any more: %s", model.uri, exc)
