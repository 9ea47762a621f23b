"""What is written on a model version, as each monitor sees it: tags for programs, and a section for people.

Only what is not there yet is written: whoever edits meanwhile is not disturbed, and MLflow's own webhooks on tags fire
when something has changed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial

from opmon.abc import VersionNotes
from opmon.errors import InputError, ModelError, NotFoundError
from opmon.reports.notes import RoundNote, brief_note, has_section, model_note, version_note, with_room
from opmon.stages.timeline import model_of
from opmon.stages.toolbox import Toolbox
from opmon.store import revisions
from opmon.store.rounds import Round
from opmon.types import ModelVersion

log = logging.getLogger(__name__)

OWNER_TAG = "opmon.monitor"
"""Whose the plain tags of a version are."""
STATUS = "status"
_FORMERLY = (".low", ".high")
"""Ends of tags that are written no more, as ``round`` is not: each was a call to MLflow in every round."""


def write_version(work: Toolbox, round_: Round, note: RoundNote) -> None:
    """How the model version does, on the version itself and, where that is news, on the registered model.

    The tags come last: its status is what tells that all of it was written, however often it is told again.
    """
    model = model_of(work, round_)
    if model is None:
        return
    try:
        before = _notes(work, round_, model)
        _describe_version(work, model, before.description, note)
        if _is_news(work, round_, before.tags.get(f"opmon.{work.name}.{STATUS}") != note.status):
            _describe_model(work, model.name, note)
        set_tags(work, model, _tags(note), before)
    except NotFoundError as exc:
        log.warning("%s is not there to be written on any more: %s", model.uri, exc)


def _is_news(work: Toolbox, round_: Round, other_status: bool) -> bool:
    """Whether the model's page says something else of the version in production: another status, or another version,
    as after a rollback. It is not this round's where a later one has found another version there.
    """
    if round_.model_version != round_.plan.current_version:
        return False
    with work.store.read() as connection:
        last = revisions.newest_in_charge(connection, work.name, round_.model_name, but=round_.number)
    if last is None:
        return other_status
    number, version = last
    return number < round_.number and (other_status or version != round_.model_version)


def set_tags(work: Toolbox, model: ModelVersion, told: Mapping[str, str], before: VersionNotes | None = None) -> None:
    """Set the tags that are not as they should be.

    Every monitor has ``opmon.<monitor>.status``. All else the first monitor of a version, which :data:`OWNER_TAG`
    names, has under plain names (``opmon.accuracy``), and every other one under its own (``opmon.<monitor>.accuracy``).
    """
    there = dict((before or work.registry.version_notes(model)).tags)
    owns = not work.settings.before or there.get(OWNER_TAG) not in work.settings.before
    own = {f"opmon.{work.name}.{name}": value for name, value in told.items() if not owns or name == STATUS}
    all_ = {f"opmon.{name}": value for name, value in told.items()} | {OWNER_TAG: work.name} | own if owns else own
    work.registry.tag_version(model, {key: value for key, value in all_.items() if there.get(key) != value})
    mine = {f"opmon.{work.name}.{name}" for name in [*told, "round"]} | ({"opmon.round"} if owns else set())
    stale = (mine | {key + end for key in mine | all_.keys() for end in _FORMERLY}) - all_.keys()
    if stale & there.keys():
        work.registry.untag_version(model, stale & there.keys())


def _notes(work: Toolbox, round_: Round, model: ModelVersion) -> VersionNotes:
    """What is written on the version; the cycle goes on to ask what the monitor's address means, which tells it too."""
    if model.version == round_.plan.current_version:
        with suppress(NotFoundError, ModelError):
            work.current()
    return work.registry.version_notes(model)


def _tags(note: RoundNote) -> dict[str, str]:
    estimate = note.estimate
    key = estimate.quantity.key
    value, low, high = (_number(one, estimate.quantity.share) for one in (estimate.value, estimate.low, estimate.high))
    return {STATUS: note.status, key: value, f"{key}.interval": f"{low} to {high}"}


def _describe_version(work: Toolbox, model: ModelVersion, before: str, note: RoundNote) -> None:
    described = with_room(before, work.name, version_note(note), brief_note(note))
    _describe(work, model.uri, before, described, partial(work.registry.describe_version, model))


def _describe_model(work: Toolbox, name: str, note: RoundNote) -> None:
    before = work.registry.model_description(name)
    if before is not None:
        described = with_room(before, work.name, model_note(note))
        _describe(work, name, before, described, partial(work.registry.describe_model, name))


def _describe(work: Toolbox, what: str, before: str, described: str, write: Callable[[str], None]) -> None:
    """Write a description that is another; one that is not taken holds up no round."""
    if not has_section(described, work.name):
        log.warning("the description of %s has no room for what opmon says of it: shorten it", what)
    if described == before:
        return
    try:
        write(described)
    except InputError as exc:
        log.warning("the description of %s stays as it is: %s", what, exc)


def _number(value: float, share: bool) -> str:
    """As programs read it, and people: without a power of ten.

    >>> _number(0.93157, True), _number(1384835786.43, False), _number(1.565e-05, False)
    ('0.9316', '1384840000', '0.00001565')
    """
    return f"{value:.4f}" if share or not math.isfinite(value) else f"{Decimal(f'{value:.6g}'):f}"
