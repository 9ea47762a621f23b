"""Guesses of the truth, fixed before labels: what any measure would be of them is a proxy for what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure, Ratio
from opmon.errors import InputError
from opmon.estimators.proxies import Proxy
from opmon.problems import Problem, traits
from opmon.types import Array, Floats, Numbers
from opmon.types.labelled import Labelled

PROBES = 3
CLASSES = 50
"""Where a guess says how likely the model is wrong, and not what is true, each other class may be: of no more classes
than these."""


@dataclass(frozen=True, eq=False)
class Guessed:
    """What is guessed of some inputs; one entry per input everywhere."""

    predicted: Array
    """What the model says, as :class:`~opmon.types.labelled.Labelled` has it."""
    wrong: Floats
    """How likely the model is wrong; of a regression its squared error, of judged outputs what they lack of 1; NaN
    where nobody knows."""
    answer: Array | None = None
    """What is held to be true, of the same kind as ``predicted``; None where that is never said."""
    answered: NDArray[np.bool_] | None = None
    """Of which inputs it is said."""
    scores: Numbers | None = None
    """The model's own scores, as measures want them."""

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def says(self) -> NDArray[np.bool_]:
        """Of which inputs it is said what is true."""
        return np.zeros(len(self), np.bool_) if self.answer is None or self.answered is None else self.answered

    def joined(self, other: Guessed) -> Guessed:
        """These inputs and the others behind them."""
        answer = self.answer
        if answer is not None and other.answer is not None:
            answer = np.concatenate([answer, other.answer])
        return Guessed(
            np.concatenate([self.predicted, other.predicted]),
            np.concatenate([self.wrong, other.wrong]),
            answer,
            np.concatenate([self.says, other.says]),
            None if self.scores is None or other.scores is None else np.concatenate([self.scores, other.scores]),
        )


@dataclass(frozen=True, eq=False)
class Guesses:
    """The truths that every draw, and every input of a reference that stands for the frame, may have.

    ``rows`` has one row per possible truth, with its ``chance``; ``unit`` is the draw it belongs to, or, counted behind
    the draws, the input of the reference.
    """

    rows: Labelled
    chance: Floats
    unit: NDArray[np.int64]
    draws: int
    reference: int
    """The number of its inputs: all of the frame, or a simple random sample drawn independently of the draws."""
    frame_size: int
    by: str = "a proxy"
    """What guesses, as the estimate's note says it."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        drawn: Guessed,
        reference: Guessed,
        frame_size: int,
        classes: tuple[str, ...] = (),
        by: str = "a proxy",
    ) -> Guesses:
        """From what is guessed of the draws, in their order, and of the reference."""
        if not 0 < len(reference) <= frame_size:
            raise InputError(f"guesses for 1 to {frame_size} inputs of the frame are needed; got {len(reference)}")
        every = drawn.joined(reference)
        unit, truth, chance = _possible(problem, every, classes)
        scores = None if every.scores is None else every.scores[unit]
        rows = Labelled(np.ones(len(unit), np.bool_), truth, every.predicted[unit], scores, classes)
        return cls(rows, chance, unit, len(drawn), len(reference), frame_size, by)

    def proxy(self, measure: Measure, value: float) -> Proxy | None:
        """What the guesses say of each draw's linearised value, with its mean over the frame, where ``value`` is the
        measure's estimate; None where they say nothing, or the measure has no such value.

        A ratio has ``ñ − R d̃``, by the guessed truths; any other measure its influence were they the truth. An input of
        which nothing is guessed counts as the mean of the others: fixed before the labels, like the rest.
        """
        usable = self.rows.scored if measure.needs_scores else np.ones(len(self.rows), np.bool_)
        if not usable.any():
            return None
        rows, chance, unit = self.rows.only(usable), self.chance[usable], self.unit[usable]
        try:
            values = _linear(measure, rows, chance * (unit >= self.draws), value)
        except InputError:
            return None
        if values is None:
            return self._of_rows(measure, rows, chance, unit)
        found, known = self._by_unit(unit, chance, values)
        return self._proxy(found if is_bounded(measure, rows) else self._clipped(found, known), known)

    def _clipped(self, values: Floats, known: NDArray[np.bool_]) -> Floats:
        """Values that may be of any size, as far out as one draw of them all is likely to lie on either side: a guess
        that is far off, such as a share of a truth near 0, would else be all that counts."""
        inside = values[self.draws :][known[self.draws :]]
        if not len(inside):
            return values
        edge = 0.5 / max(self.draws, 1)
        low, high = np.quantile(inside, [edge, 1 - edge])
        return np.clip(values, low, high)

    def _by_unit(self, unit: NDArray[np.int64], chance: Floats, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The expected value of each unit, and of which there is one."""
        count = self.draws + self.reference
        known = np.bincount(unit, minlength=count) > 0
        sums = np.bincount(unit, weights=chance * values, minlength=count)
        return np.where(np.isfinite(sums), sums, 0.0), known & np.isfinite(sums)

    def _proxy(self, values: Floats, known: NDArray[np.bool_], mean: float | None = None) -> Proxy | None:
        inside = values[self.draws :][known[self.draws :]]
        if mean is None and not len(inside):
            return None
        usual = float(inside.mean()) if mean is None else mean
        filled = np.where(known, values, usual)
        own, others = filled[: self.draws], filled[self.draws :] if mean is None else filled[: self.draws]
        left = max(1 - self.reference / self.frame_size, 0.0) / self.reference
        spread = float(others.var(ddof=1)) if len(others) > 1 else 0.0
        return Proxy(own, np.full(self.draws, usual), left * spread)

    def _of_rows(self, measure: Measure, rows: Labelled, chance: Floats, unit: NDArray[np.int64]) -> Proxy | None:
        """Of a measure that is a mean of what it is of single rows, though it does not say so."""
        drawn = unit < self.draws
        mine, others = rows.only(drawn), rows.only(~drawn)
        values = row_by_row(measure, mine, chance[drawn])
        if values is None or not len(others):
            return None
        mean = measure.value(others, chance[~drawn])
        return self._proxy(*self._by_unit(unit[drawn], chance[drawn], values), mean=mean)


def row_by_row(measure: Measure, rows: Labelled, weights: Floats) -> Floats | None:
    """What a measure is of each row alone, where it is the weighted mean of that; None where it is another function."""
    one = np.ones(1)
    try:
        alone = np.array([measure.value(rows.only(np.array([k])), one) for k in range(len(rows))])
        rng = np.random.default_rng(len(rows))
        for _ in range(PROBES):
            some = weights * rng.uniform(0.5, 2.0, len(rows))
            whole = measure.value(rows, some)
            if abs(whole - float(some @ alone) / float(some.sum())) > 1e-9 * max(
                abs(whole), float(np.abs(alone).max())
            ):
                return None
    except (InputError, ZeroDivisionError):
        return None
    return alone


def is_bounded(measure: Measure, rows: Labelled) -> bool:
    """Whether what a measure is of a row cannot be of any size."""
    ratio = measure.ratio(rows)
    if ratio is not None:
        return bool(np.isfinite([ratio.lowest, ratio.highest, ratio.heaviest]).all())
    return rows.truth.dtype.kind != "f"


def _linear(measure: Measure, rows: Labelled, weights: Floats, value: float) -> Floats | None:
    """The linearised value of each row; None of a measure that tells none."""
    ratio: Ratio | None = measure.ratio(rows)
    if ratio is not None:
        return np.asarray(ratio.numerator - value * ratio.denominator)
    if measure.gaps(rows) is not None or measure.quantile(rows) is not None:
        raise InputError("a proxy tells nothing of sizes of gaps, nor of quantiles")
    return measure.linearised(rows, weights / weights.sum())


def _possible(problem: Problem, of: Guessed, classes: tuple[str, ...]) -> tuple[NDArray[np.int64], Array, Floats]:
    """The truths that each input may have: its number, the truth, how likely it is."""
    said = np.flatnonzero(of.says)
    if problem == "classification":
        return _of_classes(of, classes)
    if traits(problem).of_numbers or not traits(problem).compares:
        known = np.flatnonzero(np.isfinite(of.wrong))
        off = of.wrong[known]
        truth = of.predicted[known] + np.sqrt(np.maximum(off, 0.0)) if traits(problem).of_numbers else 1 - off
        if len(said) and of.answer is not None:
            known, truth = said, np.asarray(of.answer)[said]
        return known, np.asarray(truth, dtype=np.float64), np.ones(len(known))
    answer = of.predicted if of.answer is None else of.answer
    return said, answer[said], np.ones(len(said))


def _of_classes(of: Guessed, classes: tuple[str, ...]) -> tuple[NDArray[np.int64], Array, Floats]:
    """The model's own class where it is not wrong; where it is, the one that is named, or any by how frequent it is."""
    wrong = _as_chances(of.wrong)
    known = np.isfinite(wrong)
    other = known & of.says & (of.says if of.answer is None else of.answer != of.predicted)
    right, named = np.flatnonzero(known & (wrong < 1)), np.flatnonzero(other & (wrong > 0))
    units, truths = [right, named], [of.predicted[right], (of.predicted if of.answer is None else of.answer)[named]]
    chances = [1 - wrong[right], wrong[named]]
    open_ = np.flatnonzero(known & ~other & (wrong > 0))
    names = np.array(classes if classes else np.unique(of.predicted), dtype=np.str_)
    if len(open_) and 1 < len(names) <= CLASSES:
        share = np.array([1.0 + np.count_nonzero(of.predicted == name) for name in names])
        share /= share.sum()
        own = np.array([share[names == name].sum() for name in names])
        place = {name: k for k, name in enumerate(names.tolist())}
        mine = np.array([own[place[name]] if name in place else 0.0 for name in of.predicted[open_].tolist()])
        for name, part in zip(names.tolist(), share.tolist(), strict=True):
            these = of.predicted[open_] != name
            units.append(open_[these])
            truths.append(np.full(int(these.sum()), name, dtype=np.str_))
            chances.append(wrong[open_][these] * part / (1 - mine[these]))
    elif len(open_):
        lost = np.isin(right, open_)
        units[0], truths[0], chances[0] = right[~lost], truths[0][~lost], chances[0][~lost]
    return np.concatenate(units), np.concatenate(truths), np.concatenate(chances)


def _as_chances(wrong: Floats) -> Floats:
    """Between 0 and 1: what is no probability is put there by its least and largest value."""
    known = wrong[np.isfinite(wrong)]
    if not len(known) or (known.min() >= 0 and known.max() <= 1):
        return wrong
    return np.asarray((wrong - known.min()) / ((known.max() - known.min()) or 1.0))
