"""How models do: what the pages on monitors show."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from opmon.queries.expected import foreseen
from opmon.queries.monitors import monitor_view
from opmon.queries.rounds import round_view
from opmon.store import rounds as kept
from opmon.web.api.asking import TheSite, Watcher
from opmon.web.api.views.monitors import ConfigurationOut, LineOut, LinesOut, OneOut
from opmon.web.api.views.plans import PlanOut
from opmon.web.api.views.rounds import (
    FailuresOut,
    ForeseenOut,
    PointOut,
    RoundOut,
    RoundsOut,
    TimelineOut,
    VersionOut,
    VersionsOut,
)
from opmon.web.failures import failures_of
from opmon.web.planned import Wish, known_of, planned
from opmon.web.versions import against, chosen
from opmon.web.watched import configuration_of, lines_for, rounds_of, timeline_of, versions_of

router = APIRouter(tags=["watching"])

Number = Annotated[int, Path(ge=1, lt=2**31)]


@router.get("/status")
def status(site: TheSite, person: Watcher) -> LinesOut:
    """All monitors that you may see: those with an alarm first, then those that need a person."""
    return LinesOut(monitors=[LineOut.model_validate(line) for line in lines_for(site, person)])


@router.get("/status/{monitor}")
def status_of(site: TheSite, person: Watcher, monitor: str, rounds: Annotated[int, Query(ge=0, le=100)] = 10) -> OneOut:
    """One monitor with its newest rounds: how it stands and why, and what it needs."""
    settings = site.monitor_for(person, monitor)
    with site.store.read() as connection:
        return OneOut.model_validate(monitor_view(connection, settings.watch, site.clock(), shown=rounds))


@router.get("/monitors/{monitor}/timeline")
def timeline(site: TheSite, person: Watcher, monitor: str) -> TimelineOut:
    """What was estimated of the last hundred rounds, with the rolling estimate and the threshold."""
    settings = site.monitor_for(person, monitor)
    with site.store.read() as connection:
        points = timeline_of(connection, settings)
        ahead = ForeseenOut.model_validate(foreseen(connection, monitor, settings.quantity))
    shown = [PointOut.model_validate(each) for each in points]
    return TimelineOut(threshold=site.thresholds[monitor], points=shown, foreseen=ahead)


@router.get("/monitors/{monitor}/rounds")
def rounds(
    site: TheSite,
    person: Watcher,
    monitor: str,
    before: Annotated[int | None, Query(ge=2, description="only rounds with smaller numbers")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RoundsOut:
    """Rounds, newest first."""
    settings = site.monitor_for(person, monitor)
    return RoundsOut(rounds=[RoundOut.model_validate(each) for each in rounds_of(site, settings, limit, before)])


@router.get("/monitors/{monitor}/rounds/{number}")
def one_round(site: TheSite, person: Watcher, monitor: str, number: Number) -> RoundOut:
    """One round: what it asked, its estimate with notes, what the rules said."""
    settings = site.monitor_for(person, monitor)
    with site.store.read() as connection:
        round_ = kept.get(connection, monitor, number)
        return RoundOut.model_validate(round_view(connection, settings.watch, round_, site.clock()))


@router.get("/monitors/{monitor}/rounds/{number}/failures")
def failures(
    site: TheSite, person: Watcher, monitor: str, number: Number, limit: Annotated[int, Query(ge=1, le=200)] = 60
) -> FailuresOut:
    """What the model got wrong: first what stands for most inputs, of a regression what is farthest off."""
    settings = site.monitor_for(person, monitor)
    with site.store.read() as connection:
        round_ = kept.get(connection, monitor, number)
        return FailuresOut.model_validate(failures_of(connection, settings, round_, limit))


@router.get("/monitors/{monitor}/versions")
def versions(
    site: TheSite, person: Watcher, monitor: str, first: str | None = None, second: str | None = None
) -> VersionsOut:
    """The model versions, each over the last rounds that it answered itself, the newest first; and which of two is
    better, the newest against the last one before it unless others are named."""
    settings = site.monitor_for(person, monitor)
    found = versions_of(site, settings)
    one, two = chosen(found, first, second)
    told = None if one is None or two is None or one is two else against(one, two, settings.quantity)
    return VersionsOut(versions=[VersionOut.model_validate(each) for each in found], comparison=told)


@router.get("/monitors/{monitor}/plan")
def plan(
    site: TheSite,
    person: Watcher,
    monitor: str,
    half_width: Annotated[float | None, Query(gt=0, description="half the width of the interval wanted")] = None,
    inputs: Annotated[int | None, Query(ge=1, le=10**12, description="in a round")] = None,
    expected: Annotated[float | None, Query(ge=0, le=1, description="what is expected of a share")] = None,
    aim: Annotated[float | None, Query(ge=0, le=1, description="0: the least error; 1: the most failures")] = None,
) -> PlanOut:
    """How many labels an interval of the wanted width needs; what is left out is taken from the newest round."""
    settings = site.monitor_for(person, monitor)
    return PlanOut.of(planned(known_of(site, settings), Wish(half_width, inputs, expected, aim)))


@router.get("/monitors/{monitor}/configuration")
def configuration(site: TheSite, person: Watcher, monitor: str) -> ConfigurationOut:
    """The keys that were given to a monitor."""
    settings = site.monitor_for(person, monitor)
    return ConfigurationOut.model_validate({"monitor": monitor, "configuration": configuration_of(settings)})
