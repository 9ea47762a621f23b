"""Ratios such as recall from draws that aim at them: one interval from the parts of the frame, of one round or several.

Inputs of one kind, such as those that are predicted ``fraud``, have one of two values of numerator and denominator by
their truth. A ratio ``R`` is at most ``r`` where ``Σ (n − r d) ≤ 0``, and by parts ``c`` of the frame, each of one
kind, this is ``Σ_c A_c (v₀ + (v₁ − v₀) p_c)`` with known ``v`` and the unknown share ``p_c`` of the second value. So
the interval is all ``r`` that the score test of a weighted sum of proportions (:mod:`._skewed_score`) does not reject:
Fieller's, with what may hide in parts where few draws stand for many inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.abc import Measure
from opmon.estimators._known import Known
from opmon.estimators._skewed_score import cautious, skewed_score_upper
from opmon.estimators._weighted_score import KNOWN
from opmon.estimators.tally import ENOUGH, Tally, grouped
from opmon.types import Array, Draw, Floats
from opmon.types.draw import KIND, PREDICTED
from opmon.types.labelled import Labelled
from opmon.wording import counted

PARTS = 50.0
"""Parts of several rounds are joined until each holds this part of all draws: small ones make intervals wider."""
STEPS = 20
"""Halvings that find a bound, to 1e-6; ``ROUGH`` ones are enough for a note."""
HIDDEN = 1.5
"""An interval so many times as wide as it would be without what may hide says so,"""
HARDLY = 0.02
"""where what may hide makes it wider by this much at least: two points."""
ROUGH = 8
MOST_ROUNDS = 64
HIDDEN_NOTE = "wide because few labels fall"


def ratio_tally(known: Known, measure: Measure) -> Tally | None:
    """What the draws tell of a measure that is a ratio; None where they did not aim, or where it has other values.

    Draws that aimed at another measure may mix, in one kind, inputs that count for this one in different ways. Where
    all that were drawn count in one way, that cannot be seen, and the kind would look as if it had no others: so each
    way in which an answer of the frame may count has to be met among the draws.
    """
    draw, rows = known.sample.draw, known.rows
    ratio = measure.ratio(rows) if KIND in draw.constants else None
    if ratio is None or (ratio.lowest, ratio.highest) != (0.0, 1.0):
        return None
    kind = np.asarray(draw.constants[KIND])[draw.columns["stratum"]][known.usable]
    values = _values(measure, rows, kind)
    if values is None or not _all_met(measure, rows, draw):
        return None
    own = values[kind]
    second = (ratio.numerator == own[:, 2]) & (ratio.denominator == own[:, 3])
    tally = known.estimator.tally(known.answering(second.astype(np.float64), "classification"))
    if tally is None or not len(tally.kind):
        return None
    a = known.coefficients
    sums = np.array([a @ ratio.numerator, a @ ratio.denominator])
    return replace(tally, values=values[tally.kind], sums=sums)


def _values(measure: Measure, rows: Labelled, kind: NDArray[np.int64]) -> Floats | None:
    """The two values that inputs of each kind may have; None where a kind has more."""
    found = np.zeros((int(kind.max()) + 1, 4))
    truths = _truths(rows)
    for one in np.unique(kind):
        table = _table(measure, rows, np.unique(rows.predicted[kind == one], axis=0), truths)
        if table is None:
            return None
        pairs = np.unique(table.reshape(-1, 2), axis=0)
        if len(pairs) > 2:
            return None
        found[one] = np.concatenate([pairs[0], pairs[-1]])
    return found


def _table(measure: Measure, rows: Labelled, said: Array, truths: Array) -> Floats | None:
    """Numerator and denominator of each answer (columns) where each of the truths holds (rows)."""
    y, answer = np.repeat(truths, len(said), axis=0), np.concatenate([said] * len(truths))
    ratio = measure.ratio(Labelled(np.ones(len(y), dtype=np.bool_), y, answer, None, rows.classes))
    if ratio is None:
        return None
    return np.stack([ratio.numerator, ratio.denominator], axis=1).reshape(len(truths), len(said), 2)


def _all_met(measure: Measure, rows: Labelled, draw: Draw) -> bool:
    """Whether each way in which an answer of the frame may count for the measure is that of an answered draw."""
    truths = _truths(rows)
    met = _table(measure, rows, np.unique(rows.predicted, axis=0), truths)
    may = _table(measure, rows, _answers(rows, draw, truths), truths)
    return met is not None and may is not None and _ways(may) <= _ways(met)


def _answers(rows: Labelled, draw: Draw, truths: Array) -> Array:
    """What the model answers somewhere in the frame, as far as that is known, or else may answer."""
    return draw.constants[PREDICTED] if rows.truth.ndim == 1 and PREDICTED in draw.constants else truths


def _ways(table: Floats) -> set[bytes]:
    return {np.ascontiguousarray(table[:, at]).tobytes() for at in range(table.shape[1])}


def _truths(rows: Labelled) -> Array:
    """The truths that there may be; of several labels at once none of them, all, and each alone, which is enough to see
    whether more than one of them counts."""
    if rows.truth.ndim == 1:
        return np.unique(np.concatenate([np.asarray(rows.classes, dtype=np.str_), rows.truth]))
    count = len(rows.classes)
    return np.concatenate([np.zeros((1, count)), np.ones((1, count)), np.eye(count)]).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of one kind each, of one round or several."""

    A: Floats
    m: Floats
    rate: Floats
    values: Floats
    sums: Floats
    small: bool
    """Whether parts are as small as one round makes them: the test is then cautious."""

    @classmethod
    def of(cls, tallies: Sequence[Tally], weights: Sequence[float]) -> Parts:
        rounds = [tally.weighing(weight) for tally, weight in zip(tallies, weights, strict=True)]
        A, m, rate, place, values, sums = (
            np.concatenate([getattr(tally, name) for tally in rounds])
            for name in ("share", "draws", "mean", "place", "values", "sums")
        )
        sums = sums.reshape(-1, 2).sum(axis=0)
        enough = max(ENOUGH, float(m[m < KNOWN].sum()) / PARTS)
        parts = []
        for value in np.unique(values, axis=0):
            inside = (values == value).all(axis=1) & (m < KNOWN)
            if inside.any() and (value[:2] != value[2:]).any():
                share, draws, x = grouped(A[inside], m[inside], rate[inside], place[inside], enough)
                parts.append((share, draws, x / np.maximum(draws, 1e-300), np.tile(value, (len(share), 1))))
        if not parts:
            return cls(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 4)), sums, False)
        shares, many, rates, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(shares, many, rates, kinds, sums, len(rounds) == 1)

    @property
    def value(self) -> float:
        return float(self.sums[0] / self.sums[1])

    @property
    def silent(self) -> NDArray[np.bool_]:
        """Parts in which all draws have one value, so that nothing but their number bounds the other."""
        return np.asarray((self.rate <= 0) | (self.rate >= 1))

    def bounds(self, level: float, steps: int = STEPS) -> tuple[float, float]:
        """All ratios between them are accepted."""
        value = min(max(self.value, 0.0), 1.0)
        return self._last(value, 0.0, level, steps), self._last(value, 1.0, level, steps)

    def _last(self, accepted: float, end: float, level: float, steps: int) -> float:
        """The ratio furthest towards ``end`` that the test accepts."""
        above = end > accepted
        if self._accepts(end, level, above):
            return end
        rejected = end
        for _ in range(steps):
            middle = (accepted + rejected) / 2
            if self._accepts(middle, level, above):
                accepted = middle
            else:
                rejected = middle
        return accepted

    def _accepts(self, r: float, level: float, above: bool) -> bool:
        """Whether ``Σ (n − r d)`` may be 0: a ratio above the estimate while its upper bound is not below."""
        first, second = (self.values[:, at] - r * self.values[:, at + 1] for at in (0, 2))
        slope = second - first if above else first - second
        weight, rate = self.A * np.abs(slope), np.where(slope >= 0, self.rate, 1 - self.rate)
        used = weight > 0
        weight, m, rate = weight[used], self.m[used], rate[used]
        caution = cautious(level) if self.small else None
        reach = skewed_score_upper(weight, m, m * rate, level, caution) - float(weight @ rate)
        away = float(self.sums[0] - r * self.sums[1])
        return away + reach >= 0 if above else -away + reach >= 0


def ratio_bounds(tallies: Sequence[Tally], weights: Sequence[float], level: float) -> tuple[float, float, float]:
    """The ratio over the inputs of all rounds, ``Σ W n / Σ W d``, with its interval."""
    parts = Parts.of(tallies, weights)
    low, high = parts.bounds(level)
    return parts.value, low, high


def hidden_note(
    tallies: Sequence[Tally], weights: Sequence[float], labels: int, size: int, level: float
) -> tuple[str, ...]:
    """Whether the interval is wide by what may hide where all labels say the same, and what would end that.

    ``labels`` were given in rounds of ``size`` inputs together. Where so few inputs may hide anything that all of them
    can be labelled, such as the predictions of a rare class, this is what helps.
    """
    parts = Parts.of(tallies, weights)
    many = 1
    while many <= MOST_ROUNDS and _is_widened(parts, many, level):
        many *= 2
    if many == 1:
        return ()
    inputs = max(round(size * float(parts.A[parts.silent].sum())), 1)
    like = "like this one" if len(tallies) == 1 else "like these"
    if inputs <= many * labels:
        end = f"labelling all {inputs:,} would end that"
    elif many <= MOST_ROUNDS:
        end = f"about {many * len(tallies)} rounds {like}, or {many * labels:,} labels, would end that"
    else:
        least = MOST_ROUNDS * len(tallies)
        end = f"not even {least} rounds {like} would end that, but scores would that tell such inputs apart"
    return (
        f"{HIDDEN_NOTE} on {counted(inputs, 'input')} of which all labels so far say the same: what may hide there "
        f"cannot be ruled out yet; {end}",
    )


def _is_widened(parts: Parts, many: int, level: float) -> bool:
    """Whether the interval, with ``many`` times the draws, is wide by what may be hidden in silent parts."""
    more = replace(parts, m=many * parts.m)
    sure = replace(more, m=np.where(parts.silent, 0.5 * KNOWN, more.m))
    low, high = more.bounds(level, ROUGH)
    least, most = sure.bounds(level, ROUGH)
    return high - low > max(HIDDEN * (most - least), most - least + HARDLY)


def plain_half_width(parts: Parts, level: float) -> float:
    """The half-width of simple random sampling times the root of the number of draws."""
    first, second = (parts.values[:, at] - parts.value * parts.values[:, at + 1] for at in (0, 2))
    square = float(parts.A @ (parts.rate * second**2 + (1 - parts.rate) * first**2)) / float(parts.sums[1]) ** 2
    return float(ndtri(0.5 + level / 2)) * math.sqrt(square)
