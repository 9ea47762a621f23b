"""estimated → closed: tell MLflow. Everything written has a fixed place, so that telling twice is telling once."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from opmon.errors import InputError, NotFoundError
from opmon.quantities import Quantity
from opmon.queries.drifting import round_drift
from opmon.reports.estimate_figure import EstimatePoint, estimate_figure
from opmon.reports.notes import round_note, timeline_note
from opmon.stages.datasets import datasets_of
from opmon.stages.decide import is_decided
from opmon.stages.drift_slices import estimates_by_class
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.failure_groups import group_failures
from opmon.stages.notes import note_of
from opmon.stages.packages import installed
from opmon.stages.points import estimate_points
from opmon.stages.rolled import rolled_of
from opmon.stages.rolling import rolling_to_tell
from opmon.stages.round_files import write_report
from opmon.stages.timeline import Told, tell_estimate
from opmon.stages.timelines import end_if_over, look_again
from opmon.stages.tomography import map_round, tomography_metrics
from opmon.stages.toolbox import Toolbox
from opmon.stages.version_tags import set_tags, write_version
from opmon.store import grouped, revisions, rolled, rounds, sliced, verdicts
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
    groups: tuple[FailureGroup, ...] = ()
    if not revision.estimate.provisional:
        round_ = _with_classes(work, round_, answers)
    with _looked_up_again(work, round_):
        if revision.estimate.provisional:
            tell_estimate(work, round_, revision, answers, Told())
        else:
            groups = group_failures(work, round_, answers)
            _roll(work, round_, answers, revision)
            _tell_final(work, round_, revision, answers, found, parts, groups, decided)
    closing = decided and not revision.estimate.provisional
    with work.write() as connection:
        anew = closing and round_.state != RoundState.CLOSED  # one that is told again was closed before
        closed = {"state": "closed", "closed_at": work.clock()} if anew else {}
        told = {} if not decided else {"problem": None}  # one that waits for its verdicts says so
        grouped.put(connection, revision.key, groups)
        rounds.update(connection, round_.id, reported=revision.revision, **told, **closed)
    if closing:
        end_if_over(work, round_)
        shutil.rmtree(work.round_folder(round_), ignore_errors=True)  # MLflow has it all now
    return True


def _roll(work: Toolbox, round_: Round, answers: Answers, revision: Revision) -> None:
    """Keep what is known of the last rounds together, once for each revision: what was told of it stays so."""
    with work.store.read() as connection:
        found = (
            None if rolled.of(connection, [revision.key]) else rolled_of(work, connection, round_, answers, revision)
        )
    if found is not None:
        with work.write() as connection:
            rolled.add(connection, revision.key, found)


def _with_classes(work: Toolbox, round_: Round, answers: Answers) -> Round:
    """The round with what is known of each predicted class, beside its drift: later rounds are held against it."""
    found = estimates_by_class(round_, answers)
    if not found or round_.drift is None:
        return round_
    drift = {**round_.drift, "by_class": found}
    with work.write() as connection:
        rounds.update(connection, round_.id, drift=drift)
    return replace(round_, drift=drift)


@contextmanager
def _looked_up_again(work: Toolbox, round_: Round) -> Iterator[None]:
    """Somebody may have deleted a run of the round: the next attempt tells another."""
    try:
        yield
    except (InputError, NotFoundError):
        look_again(work, round_)
        raise


def _tell_final(
    work: Toolbox,
    round_: Round,
    revision: Revision,
    answers: Answers,
    found: Sequence[Verdict],
    parts: Sequence[Sliced],
    groups: Sequence[FailureGroup],
    decided: bool,
) -> None:
    """All of a round with a final estimate: its files, its numbers, and how its model version does since."""
    folder = work.round_folder(round_) / "report"
    with work.store.read() as connection:
        points = estimate_points(work, connection, revision.estimate.quantity)
        drift = round_drift(connection, round_, revision)
        is_last = revisions.newest_estimated(connection, work.name, round_.model) == round_.number
    write_report(work, round_, revision, answers, found, drift, points, parts, groups, folder)
    if decided and round_.state != RoundState.CLOSED:
        _map_robustness(work, round_, folder / "robustness")
    run = round_.run_id or ""
    work.registry.log_artifacts(run, folder)
    _figure(work, round_, revision.estimate.quantity, points, folder.parent)
    note = note_of(work, round_, revision, answers.tasks)
    told = Told(
        rolling_to_tell(work, revision),
        _parameters(round_),
        round_note(note),
        timeline_note(note) if is_last else None,
    )
    tell_estimate(work, round_, revision, answers, told)
    work.registry.log_datasets(run, datasets_of(work, round_, folder))
    work.registry.finish_run(run)
    if is_last:
        write_version(work, round_, note)


def _figure(work: Toolbox, round_: Round, quantity: Quantity, points: Sequence[EstimatePoint], folder: Path) -> None:
    """The history of what is estimated, in the timeline's run."""
    path = folder / f"{quantity.key}.png"
    title = f"{quantity.caption} of {work.name} in production"
    estimate_figure(points, path, quantity=quantity, threshold=work.settings.threshold, title=title)
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
