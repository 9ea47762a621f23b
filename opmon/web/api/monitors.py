"""Who one is, what there is to label, and what one must know to do it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from opmon.web.api.asking import Somebody, TheSite
from opmon.web.api.models import Me, MonitorOut, Monitors
from opmon.web.guide import classes_of, guide_of, line_of, me_of
from opmon.web.pictures import for_browser
from opmon.web.refused import Refused

router = APIRouter(tags=["monitors"])


@router.get("/me")
def me(person: Somebody) -> Me:
    """Who you are."""
    return me_of(person)


@router.get("/monitors")
def monitors(site: TheSite, person: Somebody) -> Monitors:
    """The monitors that you may see, with what waits in each."""
    seen = site.monitors_of(person)
    return Monitors(monitors=[line_of(site, each, person) for each in seen])


@router.get("/monitors/{monitor}")
def monitor(site: TheSite, person: Somebody, monitor: str) -> MonitorOut:
    """What may be answered, what each class means, the guidelines, and how far the labels are."""
    settings = site.monitor_for(person, monitor)
    return guide_of(site, settings, person)


@router.get("/monitors/{monitor}/classes/{place}/examples/{number}", response_class=Response)
def example(site: TheSite, person: Somebody, monitor: str, place: int, number: int) -> Response:
    """A picture of what belongs to a class."""
    settings = site.monitor_for(person, monitor)
    classes = classes_of(site, settings)
    told = settings.labels.classes.get(classes[place]) if 0 <= place < len(classes) else None
    if told is None or not 0 <= number < len(told.examples):
        raise Refused(404, "there is no such example")
    try:
        content = told.examples[number].read_bytes()
    except OSError as exc:
        raise Refused(404, f"the picture of this example cannot be read: {exc.strerror}") from exc
    picture, media_type = for_browser(content)
    return Response(picture, media_type=media_type, headers={"cache-control": "private, max-age=3600"})
