"""The last rounds of a model version together, beyond their main measure: their slices and further measures; and the
main one, where rounds cannot be joined by what each of them tells, as those of an AUC cannot.

They are estimated from the draws of all rounds in the window with their newest labels, when a round of it gets an
estimate, and kept with that. Reading them needs no labels. A label that comes late changes several windows: the main
measure is estimated of each, from rounds that are read once; the rest of the newest alone, for nobody is shown others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opmon.abc import Measure
from opmon.estimators.census import METHOD as CENSUS
from opmon.estimators.joined import Joined, OneRound, joined_rows, joined_sample
from opmon.estimators.measured import measured, measured_tally
from opmon.estimators.ratio_tallies import hidden_note, ratio_bounds
from opmon.queries.rolling import Window, windows_with
from opmon.stages.estimate import Answers, read_answers
from opmon.stages.measures import Planned, main_of, measures_of, parts_of, rows_of, why_not
from opmon.stages.slices import Part, estimating, is_compared, members_of, told_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.weights import linear
from opmon.store import rounds, tallies
from opmon.store.engine import Connection
from opmon.store.measured import Measured
from opmon.store.revisions import Revision
from opmon.store.rolled import Main, Rolled
from opmon.store.rounds import Round
from opmon.types import Estimate
from opmon.types.slicing import OneSlice, Sliced, Slicing

MOST = 50
"""So many rounds are joined at most: the newest of a longer window."""


@dataclass(frozen=True, eq=False)
class Lived:
    """A round of the window with its draws."""

    round_: Round
    answers: Answers
    own: OneRound


def rolled_of(
    work: Toolbox, connection: Connection, round_: Round, answers: Answers, revision: Revision
) -> Rolled | None:
    """What is known of the newest rounds that this one is part of, now that it has this final estimate; None where
    nothing is asked of them beyond their main measure, where it is the only one, or where the newest has the truth of
    all its inputs: each round then counts what others estimate."""
    plan, limits = round_.plan, work.settings.rolling
    if not (plan.measures or (round_.slicing is not None and round_.slicing.slices)):
        return None
    windows = windows_with(connection, work.name, revision, rounds=limits.rounds, within=limits.within)
    read = _Rounds(connection, round_, answers)
    lived = read.of(windows[-1]) if windows else []
    if len(lived) < 2:
        return None
    newest, before = windows[-1], windows[:-1] if main_of(plan) is not None else []
    main = _main(connection, lived, newest)
    earlier = [known for each in before if (known := _main(connection, read.of(each), each)) is not None]
    slices, measures = _slices(lived, newest.entry.estimate), _measures(lived)
    return Rolled(_numbers(lived), slices, measures, None if main is None else main[1], tuple(earlier))


@dataclass(frozen=True, eq=False)
class _Rounds:
    """Rounds with their draws, each of which is read once."""

    connection: Connection
    round_: Round
    """One of them, whose answers are known."""
    answers: Answers
    read: dict[int, Lived | None] = field(default_factory=dict)

    def of(self, window: Window) -> list[Lived]:
        """Those of a window that are estimated like its newest one, in order; none where that has every truth."""
        if window.entry.estimate.method == CENSUS:
            return []
        found = [each for number in window.numbers[-MOST:] if (each := self._one(number)) is not None]
        return [each for each in found if _alike(each.round_, found[-1].round_)]

    def _one(self, number: int) -> Lived | None:
        if number not in self.read:
            self.read[number] = self._lived(number)
        return self.read[number]

    def _lived(self, number: int) -> Lived | None:
        same = number == self.round_.number
        other = self.round_ if same else rounds.get(self.connection, self.round_.monitor, number)
        if other.labels_pruned_at is not None:
            return None  # which rounds are joined is told with what they make
        said = self.answers if same else read_answers(self.connection, other, payloads=False)
        estimator = linear(said.sample)
        if estimator is None or not said.sample.answered.any():
            return None
        rows = rows_of(other, said.tasks, said.sample.draw) if other.plan.measures else None
        return Lived(other, said, OneRound(estimator, said.sample, rows))


def _numbers(lived: Sequence[Lived]) -> tuple[int, ...]:
    return tuple(each.round_.number for each in lived)


def _alike(one: Round, newest: Round) -> bool:
    """Whether what is estimated of two rounds is the same."""
    first, second = one.plan, newest.plan
    same = (first.problem, first.main, first.unit, first.measures) == (
        second.problem, second.main, second.unit, second.measures,
    )  # fmt: skip
    return same and (one.classes or ()) == (newest.classes or ())


def _slices(lived: Sequence[Lived], estimate: Estimate) -> tuple[Sliced, ...]:
    """The slices of the newest round, each over the rounds that have it too."""
    slicing = lived[-1].round_.slicing
    if slicing is None:
        return ()
    how = _known(lived)
    parts = [_part(lived, each) for each in slicing.slices]
    told = estimating(lived[-1].round_, how.estimator, how.sample, how.rows)
    return told_of(parts, told, how.sample.answered, estimate)


def _known(lived: Sequence[Lived]) -> OneRound:
    """All rounds as one."""
    own = [each.own for each in lived]
    return OneRound(Joined(own), joined_sample(own), joined_rows(own) if own[-1].rows is not None else None)


def _part(lived: Sequence[Lived], slice_: OneSlice) -> Part:
    members, among, inputs, size = [], [], 0, 0
    for each in lived:
        draw, slicing = each.own.sample.draw, each.round_.slicing
        own = None if slicing is None else _like(slicing, slice_)
        if slicing is None or own is None:
            members.append(np.zeros(len(draw), np.bool_))
        else:
            members.append(members_of(slicing, own, draw))
            inputs, size = inputs + own.size, size + slicing.size
        among.append(np.full(len(draw), own is not None))
    everywhere = np.concatenate(among)
    whole = OneSlice(slice_.name, slice_.levels, inputs)
    compared = is_compared(lived[-1].round_, slice_)
    return Part(whole, np.concatenate(members), size, None if everywhere.all() else everywhere, compared)


def _like(slicing: Slicing, slice_: OneSlice) -> OneSlice | None:
    """The same slice of another round; None where that round does not tell it apart."""
    return next((each for each in slicing.slices if each.levels == slice_.levels), None)


def _measures(lived: Sequence[Lived]) -> tuple[Measured, ...]:
    """The measures beside the main one, from the draws of all rounds; those that are not known say why."""
    plan = lived[-1].round_.plan
    planned = [each for each in measures_of(plan) if not each.is_main and not (plan.main is None and each.is_usual)]
    if not planned:
        return ()
    how = _known(lived)
    return tuple(found for each in planned for found in _of_one(lived, how, each))


def _main(connection: Connection, lived: Sequence[Lived], window: Window) -> Main | None:
    """The main measure from the draws of all rounds; None where their tallies join them, where it is the usual, and
    where there is one round only."""
    planned = main_of(lived[-1].round_.plan) if len(lived) > 1 else None
    known = {} if planned is None else tallies.read(connection, [each.key for each in window.kept])
    if planned is None or all(each.key in known and known[each.key].has_parts for each in window.kept):
        return None
    estimate = next((each.estimate for each in _of_one(lived, _known(lived), planned)), None)
    if estimate is None:
        return None
    return _numbers(lived), replace(estimate, method=f"rolling over {len(lived)} rounds")


def _of_one(lived: Sequence[Lived], how: OneRound, planned: Planned) -> list[Measured]:
    """A measure over the rounds, each of its cells where it is a table."""
    rows, plan = how.rows, lived[-1].round_.plan
    if rows is None:
        return []
    try:
        cells = parts_of(planned, rows.classes)
    except Exception as exc:  # noqa: BLE001 - a measure may be anybody's, and stops no other
        return [Measured(planned.key, planned.quantity, None, why_not(exc, planned, lived[-1].round_))]
    found = []
    for cell in cells:
        quantity = planned.quantity if cell == planned.measure else cell.quantity(plan.unit)
        try:
            estimate = replace(_joined(lived, how, cell), quantity=quantity)
            found.append(Measured(planned.key, quantity, estimate))
        except Exception as exc:  # noqa: BLE001 - as above
            found.append(Measured(planned.key, quantity, None, why_not(exc, planned, lived[-1].round_)))
    return found


def _joined(lived: Sequence[Lived], how: OneRound, measure: Measure) -> Estimate:
    """One measure over the rounds: a ratio that all draws aimed at, by the parts that they aimed at."""
    assert how.rows is not None
    plan = lived[-1].round_.plan
    estimate = measured(how.estimator, how.sample, how.rows, measure, plan.unit, plan.level)
    if measure.needs_scores:  # it is no ratio that draws aim at; and a round may have no scores
        return estimate
    told = [measured_tally(own.estimator, own.sample, own.rows, measure) for own in (each.own for each in lived)
            if own.rows is not None]  # fmt: skip
    ratios = [tally for tally in told if tally is not None and tally.is_ratio]
    if len(ratios) < len(lived):
        return estimate
    weights = [each.own.sample.draw.frame_size / estimate.frame_size for each in lived]
    value, low, high = ratio_bounds(ratios, weights, plan.level)
    notes = hidden_note(ratios, weights, estimate.n, estimate.frame_size, plan.level)
    return replace(estimate, value=value, low=min(low, value), high=max(high, value), notes=notes)
