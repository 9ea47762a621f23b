"""How drawn inputs are asked: of how many annotators, and with which gold tasks among them.

Both are chosen when a wave is queued, by the round's seed: after a kill the same are chosen again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from opmon.adjudication import Asked
from opmon.config import MonitorSettings
from opmon.errors import InputError
from opmon.labels.gold import Gold, read_gold
from opmon.stages.toolbox import Toolbox
from opmon.store import checked
from opmon.store.queue import SHOWN
from opmon.store.rounds import Round
from opmon.types import Json

log = logging.getLogger(__name__)


def as_met(work: Toolbox, round_: Round, new: Sequence[Asked], rng: np.random.Generator) -> list[Asked]:
    """The tasks of a wave, in their order, with gold ones at random places among them, and how often each is asked."""
    if work.settings.labels.annotators == "none":
        return list(new)
    gold = _gold(work, round_, new, rng)
    places = set(rng.permutation(len(new) + len(gold))[: len(gold)].tolist())
    drawn, slipped_in = iter(new), iter(gold)
    mixed = [next(slipped_in if place in places else drawn) for place in range(len(new) + len(gold))]
    return _of_several(work.settings, mixed, rng)


def _of_several(settings: MonitorSettings, tasks: Sequence[Asked], rng: np.random.Generator) -> list[Asked]:
    """Each task with how many annotators it needs. Gold tasks need as many as others, but their answers no others."""
    overlap = settings.labels.overlap
    several = overlap.answers if overlap.chosen else 1
    chosen = set(rng.permutation(len(tasks))[: _number(overlap.chosen * len(tasks), rng)].tolist())
    return [
        replace(task, needs=several if place in chosen else 1, confirm=0 if task.gold is not None else overlap.confirm)
        for place, task in enumerate(tasks)
    ]


def _gold(work: Toolbox, round_: Round, new: Sequence[Asked], rng: np.random.Generator) -> list[Asked]:
    """So many gold tasks that they are the configured share of all: those first that were asked the least."""
    settings = work.settings.labels.gold
    if settings is None or not new:
        return []
    number = _number(len(new) * settings.share / (1 - settings.share), rng)
    usable = _usable(work, round_, new)
    with work.store.read() as connection:
        times = checked.gold_asked(connection, work.name)
    dice = rng.random(len(usable)).tolist()
    order = sorted(range(len(usable)), key=lambda place: (times.get(usable[place].input_id, 0), dice[place]))
    chosen = [usable[place] for place in order[:number]]
    if len(chosen) < number:
        log.warning(
            "round %d of %s has %d gold tasks, not %d: there are no more in %s that look like its own",
            *(round_.number, work.name, len(chosen), number, settings.file),
        )
    first = round_.gold_asked + 1
    like = rng.integers(0, len(new), len(chosen)).tolist()
    return [
        Asked(
            *(-first - place, each.input_id, each.prediction or "", {}),
            payload=_shown(work.settings, each, new[like[place]].payload),
            gold=each.truth,
        )
        for place, each in enumerate(chosen)
    ]


def _usable(work: Toolbox, round_: Round, new: Sequence[Asked]) -> list[Gold]:
    """The inputs of the gold file that cannot be told from those that were drawn."""
    settings = work.settings
    try:
        found = gold_of(settings, round_.classes)
    except InputError as exc:
        log.warning("round %d of %s has no gold tasks: %s", round_.number, work.name, exc)
        return []
    drawn = {task.input_id for task in new}
    return [each for each in found if each.input_id not in drawn and not lacking(settings, each, new[0].payload)]


def gold_of(settings: MonitorSettings, classes: Sequence[str] | None, file: Path | None = None) -> tuple[Gold, ...]:
    """The monitor's gold file, or another as one of it, its truths by the names of the classes.

    ``classes`` are the model's, where they are known.
    """
    gold = settings.labels.gold
    if gold is None:
        return ()
    return read_gold(file or gold.file, settings.replies(classes).may_be)


def lacking(settings: MonitorSettings, gold: Gold, payload: Mapping[str, object]) -> list[str]:
    """What annotators see of other inputs, and a gold one has not: they would know it by that."""
    own = {*gold.payload, settings.columns.timestamp, *([SHOWN] if gold.prediction else [])}
    return [name for name in payload if name not in own]


def _shown(settings: MonitorSettings, gold: Gold, other: Mapping[str, Json]) -> dict[str, Json]:
    """What annotators see of it: what they see of another input, in the same order; its time is the other's."""
    own: dict[str, Json] = {SHOWN: gold.prediction, **gold.payload}
    return {name: other[name] if name == settings.columns.timestamp else own[name] for name in other}


def _number(expected: float, rng: np.random.Generator) -> int:
    """A whole number that is this on average."""
    return int(expected) + int(rng.random() < expected - int(expected))
