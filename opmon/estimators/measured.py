"""Any measure under any linear design: the estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Measure, Ratio, influence_of
from opmon.errors import InputError
from opmon.estimators._answers import loss_of
from opmon.estimators._assisting import assisted_measure
from opmon.estimators._bootstrap import bootstrapped
from opmon.estimators._bounded import above_failures, of_atom, of_bounded
from opmon.estimators._gaps import of_gaps
from opmon.estimators._known import Known
from opmon.estimators._linear import LinearEstimator
from opmon.estimators._parts import PartEstimate, part_estimate
from opmon.estimators._quantiles import of_quantile
from opmon.estimators._silence import missing
from opmon.estimators._smooth import smooth
from opmon.estimators.guesses import Guesses
from opmon.estimators.ratio_tallies import hidden_note, ratio_bounds, ratio_tally
from opmon.estimators.tally import Tally
from opmon.quantities import Quantity
from opmon.types import Estimate, Sample
from opmon.types.labelled import Labelled
from opmon.wording import counted, none_of

BY_PARTS = "ratio by parts"
"""The method of a ratio whose draws aimed at it, behind the name of their design."""


def measured(
    estimator: LinearEstimator,
    sample: Sample,
    rows: Labelled,
    measure: Measure,
    unit: str | None = None,
    level: float = 0.95,
    members: NDArray[np.bool_] | None = None,
    guesses: Guesses | None = None,
) -> Estimate:
    """The estimate of ``measure`` from the draws of ``sample``, of which ``rows`` has all that is known.

    ``estimator`` is that of the sample's design. What is done with a measure follows from what it says of itself:

    - A ratio over the whole frame is a mean, and gets the design's own estimate: unbiased.
    - Any other ratio gets the interval of a part of the frame, :func:`.ratios.ratio`, or where the draws aimed at it
      that of :mod:`.ratio_tallies`, which sees what may hide in parts of few draws; its bias is of order 1/n.
    - A plain mean of several ratios joins their intervals (Zou and Donner, Statistics in Medicine 27, 2008), with the
      variance of their mean by linearisation.
    - A sum of sizes of gaps has what chance adds taken out: :mod:`._gaps`.
    - A quantile ends where the interval of the share below it does: :mod:`._quantiles`.
    - Another function of the draws has its variance by linearisation, :mod:`._smooth`, and where it tells no influence,
      by a weighted bootstrap, :mod:`._bootstrap`.

    Draws whose scores are not known count as not answered for a measure that needs them. With ``members`` it is the
    measure of the part of the frame that these draws, one entry each, lie in: a ratio in any case. With ``guesses`` of
    the truth, which were fixed before the labels, it is assisted by them: :mod:`._assisting`.
    """
    _require(sample, rows, measure, level)
    usable, told = _usable(rows, measure)
    sample = Sample(sample.draw, np.where(usable, 0.0, np.nan), None, sample.propensity)
    inside = usable if members is None else usable & members
    if not inside.any():
        name = measure.quantity(unit).name
        raise InputError(f"no answered draw is inside the slice of {name!r}: draw more, or take a wider slice")
    known = Known(estimator, sample, rows.only(inside), inside)
    notes = (*told, *measure.notes(known.rows))
    with np.errstate(all="ignore"):
        estimate = _estimate(known, measure, measure.quantity(unit), level, whole=members is None)
        if guesses is not None and members is None:
            estimate = _bounded(known, measure, assisted_measure(known, measure, estimate, guesses, level))
        estimate = _told(measure, estimate)
    if not math.isfinite(estimate.value):
        raise InputError(
            f"{estimate.quantity.name} of {counted(len(known.rows), 'answer')} is {estimate.value}, which is no "
            "estimate; look for values that are missing or infinite"
        )
    if members is not None:
        drawn = int(members.sum())
        estimate = replace(estimate, n=drawn, response=int(inside.sum()) / drawn)
    silent = missing(sample) if members is None else ()
    return replace(estimate, notes=tuple(dict.fromkeys((*notes, *estimate.notes, *silent))))


def measured_tally(estimator: LinearEstimator, sample: Sample, rows: Labelled, measure: Measure) -> Tally | None:
    """What draws that aimed at a ratio tell of it, for an interval over several rounds; None of others."""
    usable, _ = _usable(rows, measure)
    sample = Sample(sample.draw, np.where(usable, 0.0, np.nan), None, sample.propensity)
    return ratio_tally(Known(estimator, sample, rows.only(usable), usable), measure)


def measured_gain(estimator: LinearEstimator, sample: Sample, rows: Labelled, measure: Measure) -> float | None:
    """The standard error of the measure from these draws, relative to that of as many simple random draws; None where
    the measure tells no influence, or nothing varies.

    Both are of the same linearised values ``u``: that of the design beside ``S² (1/n − 1/N)`` with their variance
    ``S²`` over the frame, which the draws estimate too.
    """
    usable, _ = _usable(rows, measure)
    sample = Sample(sample.draw, np.where(usable, 0.0, np.nan), None, sample.propensity)
    known = Known(estimator, sample, rows.only(usable), usable)
    count = len(known.rows)
    with np.errstate(all="ignore"):
        influence = influence_of(measure, known.rows, known.weights)
        if influence is None or count < 2:
            return None
        away = influence - float(known.weights @ influence)
        plain = float(known.weights @ away**2) * count / (count - 1) * (1 / count - 1 / sample.draw.frame_size)
        own = known.variance(influence)
    return math.sqrt(own / plain) if plain > 0 and own > 0 and math.isfinite(own / plain) else None


def _estimate(known: Known, measure: Measure, quantity: Quantity, level: float, *, whole: bool) -> Estimate:
    rows = known.rows
    ratio = measure.ratio(rows)
    if ratio is not None:
        return _of_ratio(known, measure, ratio, quantity, level, whole=whole)
    ratios = measure.ratios(rows)
    if ratios is not None:
        return _of_ratios(known, measure, ratios, quantity, level)
    gaps = measure.gaps(rows)
    if gaps is not None:
        return of_gaps(known, gaps, quantity, level)
    quantile = measure.quantile(rows)
    if quantile is not None:
        return of_quantile(known, quantile, quantity, level)
    influence = measure.linearised(rows, known.weights)
    if influence is None:
        return bootstrapped(known, measure, quantity, level)
    return smooth(known, measure, influence, quantity, level)


def _bounded(known: Known, measure: Measure, estimate: Estimate) -> Estimate:
    """The estimate inside what the measure may be; of a mean the value may leave that by chance, which a note says."""
    ratio = measure.ratio(known.rows)
    share = estimate.quantity.share
    lowest, highest = (0.0, 1.0) if share else (-math.inf, measure.highest)
    if ratio is not None:
        lowest, highest = max(lowest, ratio.lowest), min(highest, ratio.highest)
    value, notes = estimate.value, estimate.notes
    if ratio is None or not ratio.is_mean:
        value = min(max(value, lowest), highest)
    elif not lowest <= value <= highest:
        notes = (*notes, "the estimate leaves its range by chance, as an unbiased estimate of few draws may")
    low, high = min(max(estimate.low, lowest), value), max(min(estimate.high, highest), value)
    return replace(estimate, value=value, low=low, high=high, notes=notes)


def _told(measure: Measure, estimate: Estimate) -> Estimate:
    """The estimate of a ratio, as the measure tells it."""
    value, low, high = (_finite(measure, bound) for bound in (estimate.value, estimate.low, estimate.high))
    if value == estimate.value:
        return estimate
    error = estimate.standard_error
    slope = abs(_finite(measure, estimate.value * (1 + 1e-6)) - value) / (1e-6 * abs(estimate.value) or 1.0)
    return replace(estimate, value=value, low=low, high=high, standard_error=None if error is None else slope * error)


def _finite(measure: Measure, bound: float) -> float:
    return measure.told(bound) if math.isfinite(bound) else bound


def _require(sample: Sample, rows: Labelled, measure: Measure, level: float) -> None:
    if measure.is_table:
        name = measure.quantity().name
        raise InputError(f"{name} is a table: estimate each of the measures that its cells() gives")
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
    if len(rows) != len(sample.draw):
        raise InputError(f"rows have one entry per draw: {len(sample.draw)}; got {len(rows)}")
    if (rows.answered != sample.answered).any():
        raise InputError(
            f"rows and sample differ in which draws are answered: {int(rows.answered.sum())} and "
            f"{int(sample.answered.sum())} of {len(rows)}; make both from the same labels"
        )


def _usable(rows: Labelled, measure: Measure) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """The draws that count for the measure, with a note where scores are missing."""
    if not rows.answered.any():
        none = none_of(len(rows), "draw", "has an answer yet", "has no answer yet")
        raise InputError(f"{none}; an estimate needs at least one. Wait for labels, or import them.")
    if not measure.needs_scores:
        return rows.answered, ()
    usable = rows.answered & rows.scored
    if not usable.any():
        name = measure.quantity(None).name
        none = none_of(len(rows), "draw", "has any", "has none")
        raise InputError(f"{name} needs the model's scores, and {none}")
    lacking = int((rows.answered & ~usable).sum())
    told = f"{lacking} of {int(rows.answered.sum())} answered draws have no scores and do not count"
    return usable, (told,) if lacking else ()


def _of_ratio(
    known: Known, measure: Measure, ratio: Ratio, quantity: Quantity, level: float, *, whole: bool
) -> Estimate:
    if whole and ratio.is_mean and math.isfinite(max(ratio.lowest, -ratio.highest)):
        return _of_mean(known, ratio, quantity, level)
    tally = ratio_tally(known, measure) if whole else None
    if tally is not None and tally.sums[1] > 0:
        return _of_parts(known, measure, tally, quantity, level)
    found = _part(known, ratio, quantity, level)
    return known.estimate(found.value, found.low, found.high, quantity, "ratio", level, found.error, found.notes)


def _of_mean(known: Known, ratio: Ratio, quantity: Quantity, level: float) -> Estimate:
    """The design's own estimate of a mean, of how far values are from one of the ends that they cannot pass."""
    from_above = math.isfinite(ratio.highest) and (quantity.better == "higher" or not math.isfinite(ratio.lowest))
    losses = ratio.highest - ratio.numerator if from_above else ratio.numerator - ratio.lowest
    sample = known.answering(losses, "classification" if ratio.binary else "regression")
    estimate = known.estimator.estimate(sample, level)
    if ratio.binary and from_above:
        return replace(estimate, quantity=quantity)
    loss, low, high = loss_of(estimate)
    if math.isfinite(ratio.highest - ratio.lowest) and not ratio.binary:
        levels = np.abs(np.array(ratio.levels) - (ratio.highest if from_above else ratio.lowest))
        span = ratio.highest - ratio.lowest
        if ratio.atom:
            estimate, low, high = of_atom(known, losses, span, estimate, level)
        else:
            estimate, low, high = of_bounded(known, losses, levels, span, estimate, level)
    if not from_above:
        high = max(high, above_failures(known, losses, ratio, loss, level))
    if from_above:
        value, low, high = ratio.highest - loss, ratio.highest - high, ratio.highest - low
    else:
        value, low, high = (ratio.lowest + bound for bound in (loss, low, high))
    return replace(estimate, value=value, low=low, high=high, quantity=quantity)


def _of_parts(known: Known, measure: Measure, tally: Tally, quantity: Quantity, level: float) -> Estimate:
    """A ratio from draws that aimed at it, or at another whose inputs are of the same kinds."""
    value, low, high = ratio_bounds([tally], [1.0], level)
    influence = measure.linearised(known.rows, known.weights)
    error = None if influence is None else math.sqrt(known.variance(influence))
    notes = hidden_note([tally], [1.0], len(known.rows), known.sample.draw.frame_size, level)
    return known.estimate(value, low, high, quantity, BY_PARTS, level, error, notes)


def _part(known: Known, ratio: Ratio, quantity: Quantity, level: float) -> PartEstimate:
    mass = known.of_all(ratio.denominator)
    if not (mass > 0).any():
        raise InputError(
            f"{quantity.name} is undefined: {_uncounted(known)}. Label more inputs, or such as are likely to count"
        )
    values = np.divide(known.of_all(ratio.numerator), mass, out=np.zeros(len(mass)), where=mass > 0)
    return part_estimate(known.estimator, known.sample, values, mass, ratio, ratio.binary, level)


def _of_ratios(known: Known, measure: Measure, ratios: Sequence[Ratio], quantity: Quantity, level: float) -> Estimate:
    """The plain mean of ratios; ``factor`` is what the variance of their mean has beyond that of independent ones."""
    parts = [_part(known, ratio, quantity, level) for ratio in ratios if ratio.counts]
    if not parts:
        raise InputError(f"{quantity.name} is undefined: {_uncounted(known)}")
    count, absent = len(parts), [ratio for ratio in ratios if not ratio.counts]
    influence = measure.linearised(known.rows, known.weights)
    alone = math.fsum(part.error**2 for part in parts) / count**2
    variance = alone if influence is None else known.variance(influence)
    factor = max(math.sqrt(variance / alone), 1.0) if alone > 0 else 1.0
    value = math.fsum(part.value for part in parts) / count
    below = factor * math.sqrt(math.fsum((part.value - part.low) ** 2 for part in parts)) / count
    above = factor * math.sqrt(math.fsum((part.high - part.value) ** 2 for part in parts)) / count
    few = sum(not (part.part.tells or part.part.known) for part in parts)
    have = "has" if few == 1 else "have"
    notes = (f"{few} of the {count} parts of this mean {have} too few answers to say more than bounds",) if few else ()
    low, high = (
        (count * bound + math.fsum(ends)) / len(ratios)
        for bound, ends in (
            (value - below, [ratio.lowest for ratio in absent]),
            (value + above, [ratio.highest for ratio in absent]),
        )
    )
    return known.estimate(value, low, high, quantity, "ratios", level, math.sqrt(variance), notes)


def _uncounted(known: Known) -> str:
    return none_of(len(known.rows), "answer", "counts for it", "does not count for it")
