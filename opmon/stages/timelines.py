"""The MLflow runs of a round: its model version's timeline and its own, and which timelines go on.

A timeline is RUNNING as long as its version is watched, and FINISHED when another has taken its place and all of its
rounds are closed, or when the monitor is configured no more.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime, timedelta

from opmon.abc import Registry
from opmon.errors import InputError, NotFoundError, OpmonError
from opmon.stages.toolbox import Toolbox, experiment_of
from opmon.store import rounds, timelines
from opmon.store.engine import Store
from opmon.store.rounds import Round

log = logging.getLogger(__name__)

TIMELINE = "timeline"
GONE = timedelta(days=1)
"""Another process may have a configuration with the monitor: one is over that nobody has worked at for so long."""


def open_runs(work: Toolbox, round_: Round) -> tuple[str, str]:
    """The runs of a round, found or made: its timeline and its own."""
    try:
        return _timeline(work, round_), _own(work, round_)
    except (InputError, NotFoundError):
        work.timelines.clear()  # what they are in may have been deleted: it is looked up the next time
        raise


def _timeline(work: Toolbox, round_: Round) -> str:
    current = round_.plan.current_version or round_.model_version
    place = (round_.model_name, round_.model_version, round_.plan.since, current)
    if place not in work.timelines:
        experiment, name = work.experiment(), f"{round_.model_name} v{round_.model_version}"
        timeline = work.registry.run(experiment, round_.timeline_key, name, tags=_tags(work, round_, TIMELINE))
        _settle(work, experiment, timeline, (round_.model_name, current))
        for known in [each for each in work.timelines if len(each) == len(place) and each[-1] != current]:
            del work.timelines[known]  # if the version comes back, its timeline goes on
        work.timelines[place] = timeline
    return work.timelines[place]


def _own(work: Toolbox, round_: Round) -> str:
    tags, parent = _tags(work, round_, "round") | {"opmon.round": str(round_.number)}, _timeline(work, round_)
    make = work.registry.new_run if round_.number in work.fresh else work.registry.run
    work.fresh.discard(round_.number)  # where its answer is lost, it is looked for the next time
    return make(work.experiment(), round_.key, f"round {round_.number}", parent=parent, tags=tags)


def _tags(work: Toolbox, round_: Round, kind: str) -> dict[str, str]:
    return {
        "opmon.monitor": work.name,
        "opmon.model": round_.model_name,
        "opmon.model_version": round_.model_version,
        "opmon.kind": kind,
    }


def look_again(work: Toolbox, round_: Round) -> None:
    """A run of a round is not as it was, perhaps deleted: find or make what the next attempt tells it to."""
    work.timelines.clear()
    try:
        timeline, own = open_runs(work, round_)
    except OpmonError as exc:
        log.warning("%s", exc)
        return
    if (timeline, own) != (round_.timeline_run_id, round_.run_id):
        with work.write() as connection:
            rounds.update(connection, round_.id, timeline_run_id=timeline, run_id=own)


def end_if_over(work: Toolbox, round_: Round) -> None:
    """End the timeline of a round that is closed, where it was the last that its version waited for."""
    with work.store.read() as connection:
        newest = rounds.newest(connection, work.name, 1)[0]
        current = (newest.model_name, newest.plan.current_version or newest.model_version)
        if round_.model == current:
            return
        found = timelines.of(connection, work.name, current)
    if any(each.over and each.run_id == round_.timeline_run_id for each in found):
        work.registry.finish_run(round_.timeline_run_id or "")


def end_those_gone(store: Store, registry: Registry, configured: Collection[str], now: datetime) -> list[str]:
    """End the timelines of monitors that are configured no more; gives the names of the monitors."""
    with store.read() as connection:
        known = timelines.monitors(connection)
    ended = []
    for name, worked_at in sorted(known.items()):
        if name in configured or (worked_at is not None and now - worked_at < GONE):
            continue
        running = registry.running(registry.experiment(experiment_of(name)), TIMELINE)
        for run_id in running:
            registry.finish_run(run_id)
        ended += [name] if running else []
    return ended


def _settle(work: Toolbox, experiment: str, timeline: str, current: tuple[str, str]) -> None:
    """Let every timeline be as it should: looked at once in a process, and when another version takes the place."""
    with work.store.read() as connection:
        known = timelines.of(connection, work.name, current)
    if not known:
        return  # it was made just now
    running = work.registry.running(experiment, TIMELINE)
    if timeline not in running:
        work.registry.resume_run(timeline)
    for each in known:
        if each.over and each.run_id in running and each.run_id != timeline:
            work.registry.finish_run(each.run_id)
