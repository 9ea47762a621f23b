"""The estimates of a round's slices, from the same labels as its own."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.estimators.counted import of_losses, of_measure
from opmon.estimators.measured import measured
from opmon.estimators.ratios import slice_accuracy
from opmon.estimators.slices import Estimating, behind
from opmon.stages.frames import SLICE
from opmon.stages.measures import Planned, main_of, measures_of, rows_of
from opmon.stages.weights import linear
from opmon.store.rounds import Round
from opmon.types import Draw, Estimate, Sample
from opmon.types.labelled import Labelled
from opmon.types.slicing import PREDICTION, DrawnCut, OneSlice, Sliced, Slicing

if TYPE_CHECKING:
    from opmon.stages.census import Whole
    from opmon.stages.estimate import Answers

log = logging.getLogger(__name__)

Members = NDArray[np.bool_]

NOT_COMPARED = "inputs with one answer: that decides most of this measure, so it is not compared with the others"
UNKNOWN = "the design of the sample does not tell what its draws stand for"


def members_of(slicing: Slicing, slice_: OneSlice, draw: Draw) -> Members:
    """Which draws lie in a slice."""
    inside = np.ones(len(draw), np.bool_)
    for one in slicing.divided:
        if one.name in slice_.levels:
            inside &= draw.columns[SLICE + one.name] == one.levels.index(slice_.levels[one.name])
    return inside


def drawn_cuts(slicing: Slicing | None, draw: Draw) -> tuple[DrawnCut, ...]:
    """The slices of every cut, and which draws lie in them."""
    found = []
    for one in slicing.divided if slicing is not None else ():
        codes = draw.columns[SLICE + one.name]
        members = {one.slice_name(level): codes == place for place, level in enumerate(one.levels)}
        found.append(DrawnCut(one.name, members, one.room, one.fixed))
    return tuple(found)


def slices_of(round_: Round, answers: Answers, estimate: Estimate, whole: Whole | None = None) -> tuple[Sliced, ...]:
    """What is known of each slice of a round, those that are worse than all other inputs first.

    Its own interval is that of the round's level; which slices are worse is said with one error over all of them. With
    the truth of every input, ``whole``, slices are counted and not estimated; which of them are worse is then said as
    of inputs that are a sample of all that the model may meet: some slice always does a little worse by chance.
    """
    slicing = round_.slicing
    if slicing is None or not slicing.slices:
        return ()
    sample = answers.sample
    if whole is not None and whole.sample is not None and (whole.rows is not None or not round_.plan.measures):
        sample = whole.sample
        told = _counting(round_, sample, whole.rows)
    else:
        rows = rows_of(round_, answers.tasks, sample.draw) if round_.plan.measures else None
        told = estimating(round_, linear(sample), sample, rows)
    parts = [
        Part(each, members_of(slicing, each, sample.draw), slicing.size, compared=is_compared(round_, each))
        for each in slicing.slices
    ]
    return told_of(parts, told, sample.answered, estimate)


@dataclass(frozen=True, eq=False)
class Part:
    """A slice with the draws in it, of so many inputs; ``among`` are the draws that it is compared with, where these
    are not all."""

    slice: OneSlice
    members: Members
    size: int
    among: Members | None = None
    compared: bool = True
    """Whether it may be called worse than the others."""


def is_compared(round_: Round, slice_: OneSlice) -> bool:
    """Whether the main measure of a slice tells how good the model is there: a recall does not among inputs that are
    all said to be of one class."""
    main = main_of(round_.plan)
    return main is None or not main.measure.follows_answer or PREDICTION not in slice_.levels


def told_of(parts: Sequence[Part], told: Told, answered: Members, estimate: Estimate) -> tuple[Sliced, ...]:
    """What is known of each part, those that are worse than all others first."""
    (main, others), to_compare = told
    inside = {part.slice.name: part.members for part in parts if part.compared}
    among = {part.slice.name: part.among for part in parts if part.among is not None}
    worse = {} if to_compare is None else behind(to_compare, inside, answered, estimate.quantity, among=among)
    found = []
    for part in parts:
        one = _one(part, answered, main, estimate.level)
        beside = _further(others, part.members & answered, part.members, estimate.level)
        if not part.compared:
            one = replace(one, note="; ".join(filter(None, (NOT_COMPARED, one.note))))
        gap = worse.get(part.slice.name)
        if gap is not None:
            one = replace(one, worse_by=gap.by, worse_at_least=gap.at_least)
        found.append(replace(one, further=beside))
    return tuple(sorted(found, key=lambda each: -(each.worse_at_least or 0.0)))


Told = tuple[tuple[Estimating | None, Mapping[str, Estimating]], Estimating | None]
"""How the main measure of a part is told, others that are known of parts, and how parts are compared by the main one;
None where the design does not tell what its draws stand for."""


def _counting(round_: Round, everything: Sample, rows: Labelled | None) -> Told:
    """How parts of a round are counted of which every input has its truth, and how they are compared: as of inputs that
    are a sample of those that the model may meet."""
    usual = of_losses(everything.outcomes, round_.plan.problem, round_.plan.usual_quantity)
    if rows is None:
        return (usual.exact, {}), usual.by_chance
    main = main_of(round_.plan)
    counted = usual if main is None else of_measure(rows, main.measure, main.quantity)
    further = {
        each.key: of_measure(rows, each.measure, each.quantity).exact
        for each in _beside(round_, main)
        if not each.measure.needs_scores and _tells_of_parts(each, rows)
    }
    return (counted.exact, further), counted.by_chance


def _beside(round_: Round, main: Planned | None) -> list[Planned]:
    """The measures beside the main one."""
    return [each for each in measures_of(round_.plan) if not each.is_main and not (main is None and each.is_usual)]


def estimating(round_: Round, estimator: LinearEstimator | None, sample: Sample, rows: Labelled | None) -> Told:
    """How parts are estimated by measures that are sums over the draws, or vary as such; of a round, or of several that
    are planned like it."""
    if estimator is None:
        return (None, {}), None
    main = main_of(round_.plan)

    def usual(members: Members, level: float) -> Estimate:
        return slice_accuracy(estimator, sample, members, "slice", level)

    def of(one: Planned, known: Labelled) -> Estimating:
        def estimate(members: Members, level: float) -> Estimate:
            return measured(estimator, sample, known, one.measure, round_.plan.unit, level, members)

        return estimate

    if rows is None:
        return (usual, {}), usual
    further = {each.key: of(each, rows) for each in _beside(round_, main) if _tells_of_parts(each, rows)}
    of_main = usual if main is None else of(main, rows)
    return (of_main, further), of_main


def _tells_of_parts(planned: Planned, rows: Labelled) -> bool:
    """Whether a measure is told of parts: it is a sum over the draws, and not undefined for all of them."""
    try:
        return _is_sum(planned.measure, rows)
    except InputError:  # such as an AUC where all answers are of one class
        return False
    except Exception:  # a measure may be anybody's, and stops no other
        log.exception("the measure %s failed, and is told of no part", planned.key)
        return False


def _is_sum(measure: Measure, rows: Labelled) -> bool:
    """Whether a measure is a sum over the draws, or varies as one: others would be resampled for every slice."""
    usable = rows.only(rows.answered & rows.scored if measure.needs_scores else rows.answered)
    if measure.is_table or not len(usable):
        return False
    if measure.ratio(usable) is not None or measure.ratios(usable) is not None:
        return True
    return measure.linearised(usable, np.full(len(usable), 1 / len(usable))) is not None


def _further(
    others: Mapping[str, Estimating], answered: Members, members: Members, level: float
) -> dict[str, tuple[float | None, ...]]:
    """The other measures of a part; those that are not known of it are left out."""
    found: dict[str, tuple[float | None, ...]] = {}
    for key, estimate in others.items() if answered.any() else ():
        try:
            one = estimate(members, level)
        except InputError:  # such as a recall where none of the answers is of the class
            continue
        except Exception:
            log.exception("the measure %s failed, and is not told of a part", key)
            continue
        found[key] = (one.value, _bound(one.low), _bound(one.high))
    return found


def _one(part: Part, answers: Members, how: Estimating | None, level: float) -> Sliced:
    drawn, answered = int(part.members.sum()), int((part.members & answers).sum())
    one = Sliced(part.slice.name, part.slice.levels, part.slice.size, part.slice.size / part.size, drawn, answered)
    if how is None:
        return replace(one, note=UNKNOWN)
    if not answered:
        return replace(one, note=f"none of its {drawn} draws has an answer" if drawn else "nothing was drawn in it")
    try:
        value = how(part.members, level)
    except InputError as exc:
        return replace(one, note=str(exc))
    low, high, note = _bound(value.low), _bound(value.high), "; ".join(dict.fromkeys(value.notes))
    return replace(one, value=value.value, low=low, high=high, note=note)


def _bound(value: float) -> float | None:
    return value if math.isfinite(value) else None
