"""How models hold under combined perturbations: the tomographies of a monitor, and questions to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from opmon.errors import NotFoundError
from opmon.reports.robustness_examples import picture
from opmon.store import tomographies as stored
from opmon.web.api.asking import TheSite, Watcher
from opmon.web.api.views.robustness import AnswerOut, MapOut, TomographiesOut, TomographyOut
from opmon.web.robust import history_of, one_of

router = APIRouter(tags=["robustness"])

Number = Annotated[int, Path(ge=1, lt=2**31)]
LONGEST_QUESTION = 2000


@router.get("/monitors/{monitor}/robustness")
def tomographies(site: TheSite, person: Watcher, monitor: str) -> TomographiesOut:
    """The tomographies of a monitor, newest first."""
    found = history_of(site.store, site.monitor_for(person, monitor))
    return TomographiesOut(tomographies=[TomographyOut.model_validate(each) for each in found])


@router.get("/monitors/{monitor}/robustness/{number}")
def tomography(site: TheSite, person: Watcher, monitor: str, number: Number) -> TomographyOut:
    """The one that was made with a round."""
    return TomographyOut.model_validate(one_of(site.store, site.monitor_for(person, monitor), number))


@router.get("/monitors/{monitor}/robustness/{number}/answer")
def answer(
    site: TheSite,
    person: Watcher,
    monitor: str,
    number: Number,
    question: Annotated[
        str, Query(max_length=LONGEST_QUESTION, description="such as zoom > 2 and blur > 2; Q1 to Q12; all")
    ] = "all",
    worst: Annotated[int, Query(ge=0, le=1000, description="so many of the worst tests")] = 5,
) -> AnswerOut:
    """The mean share still right over the tests that meet a question, with its interval."""
    result = site.tomographies.of(one_of(site.store, site.monitor_for(person, monitor), number))
    return AnswerOut.model_validate(result.ask(question, worst))


@router.get("/monitors/{monitor}/robustness/{number}/map")
def whole_map(site: TheSite, person: Watcher, monitor: str, number: Number) -> MapOut:
    """All tests."""
    result = site.tomographies.of(one_of(site.store, site.monitor_for(person, monitor), number))
    return MapOut(
        names=list(result.space.names),
        levels=result.space.levels,
        ordered=result.space.ordered,
        severities=result.tests.severities.tolist(),
        share=result.share.tolist(),
        low=result.low.tolist(),
        high=result.high.tolist(),
        measured=result.measured.tolist(),
    )


@router.get("/monitors/{monitor}/robustness/{number}/pictures/{name}", response_class=Response)
def example(
    site: TheSite, person: Watcher, monitor: str, number: Number, name: Annotated[str, Path(max_length=40)]
) -> Response:
    """An input under a test, as a PNG."""
    kept = one_of(site.store, site.monitor_for(person, monitor), number)
    with site.store.read() as connection:
        content = stored.examples_of(connection, kept.round_id)
    found = None if content is None else picture(content, name)
    if found is None:
        raise NotFoundError(f"the tomography of round {number} has no picture {name!r}")
    return Response(found, media_type="image/png", headers={"cache-control": "private, max-age=3600"})
