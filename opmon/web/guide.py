"""What an annotator is told of a monitor: what to answer, how, and what each class means."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import quote

from opmon.config import MonitorSettings
from opmon.config.labels import LONGEST_GUIDE
from opmon.labels.queue import Progress
from opmon.problems import traits
from opmon.store import handing_out
from opmon.web.api.models import ClassOut, Form, Me, MonitorLine, MonitorOut, ProgressOut
from opmon.web.class_keys import keys_of
from opmon.web.identity import Person
from opmon.web.markdown import html_of
from opmon.web.root import under
from opmon.web.secrets import sha256_of
from opmon.web.site import Site

log = logging.getLogger(__name__)


def classes_of(site: Site, settings: MonitorSettings) -> Sequence[str]:
    """What may be answered: as configured, or as the model of the latest round calls its classes."""
    if not traits(settings.problem).of_classes:
        return ()
    if settings.class_names is not None:
        return settings.class_names
    with site.store.read() as connection:
        return handing_out.latest_classes(connection, settings.name)


def mark_of(classes: Sequence[str]) -> str:
    """Changes when the classes do: whoever was told them knows by it whether they are still these."""
    return sha256_of("\0".join(classes))[:16]


def form_of(settings: MonitorSettings, classes: Sequence[str]) -> Form:
    """How an answer is given: by choosing a class, or several; by writing names where they are not known; as a number;
    or, of an output, by passing or failing it, or by a score or stars."""
    if settings.scale is not None:
        return settings.scale
    if traits(settings.problem).of_numbers:
        return "number"
    if not classes:
        return "text"
    return "several" if settings.problem == "multilabel" else "classes"


def me_of(person: Person) -> Me:
    """What somebody is told of themselves."""
    monitors = None if person.monitors is None else list(person.monitors)
    told = {"name": person.name, "role": person.role, "monitors": monitors, "by": person.by, "csrf": person.csrf}
    return Me.model_validate(told)


def guide_of(site: Site, settings: MonitorSettings, person: Person) -> MonitorOut:
    """All of it."""
    classes, guidelines = classes_of(site, settings), guidelines_of(settings)
    return MonitorOut(
        name=settings.name,
        problem=settings.problem,
        form=form_of(settings, classes),
        unit=settings.unit,
        classes=_classes(settings, classes),
        classes_mark=mark_of(classes),
        guidelines=guidelines,
        guidelines_html=None if guidelines is None else html_of(guidelines),
        shows_prediction=settings.labels.show_prediction or settings.judged_column is not None,
        has_provider=settings.labels.provider is not None,
        progress=_progress(site, settings, person),
    )


def line_of(site: Site, settings: MonitorSettings, person: Person) -> MonitorLine:
    """A monitor in one line."""
    form = form_of(settings, classes_of(site, settings))
    return MonitorLine(name=settings.name, form=form, progress=_progress(site, settings, person))


def guidelines_of(settings: MonitorSettings) -> str | None:
    """What annotators are to read first; None where there is nothing, or its file cannot be read now."""
    file = settings.labels.guidelines_file
    try:
        text = settings.labels.guidelines if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        log.warning("the guidelines of %s cannot be read: %s", settings.name, exc)
        return None
    return text[:LONGEST_GUIDE] if text.strip() else None


def progress_out(progress: Progress, person: Person) -> ProgressOut:
    """How far it is, as far as somebody is to know."""
    all_of_it = {"asked": progress.asked, "spoken": progress.spoken} if person.role != "annotator" else {}
    return ProgressOut(open=progress.open, mine=progress.mine, due_at=progress.due_at, **all_of_it)


def _progress(site: Site, settings: MonitorSettings, person: Person) -> ProgressOut:
    annotator = person.name if person.labels else None
    return progress_out(site.queue.progress(settings.name, annotator), person)


def _classes(settings: MonitorSettings, classes: Sequence[str]) -> list[ClassOut]:
    keys = keys_of(classes)
    return [_class(settings, place, name, key) for place, (name, key) in enumerate(zip(classes, keys, strict=True))]


def _class(settings: MonitorSettings, place: int, name: str, key: str | None) -> ClassOut:
    told = settings.labels.classes.get(name)
    if told is None:
        return ClassOut(name=name, key=key)
    where = under(f"/api/v1/monitors/{quote(settings.name)}/classes/{place}/examples")
    examples = [f"{where}/{number}" for number in range(len(told.examples))]
    return ClassOut(name=name, key=key, description=told.text or None, examples=examples)
