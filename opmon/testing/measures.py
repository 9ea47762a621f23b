"""The suite that every measure passes: what it says of itself agrees, and its interval holds what it should."""

from __future__ import annotations

import math
import pickle

import numpy as np

from opmon.abc import Measure
from opmon.errors import InputError
from opmon.estimators.measured import measured
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.quantities import PROBLEMS, Problem
from opmon.testing._foresight import check_foresight
from opmon.types import Draw, Estimate, Floats, Labelled, Positions, Sample

SIZE, DRAWS, REPETITIONS, SLOW = 3000, 200, 120, 40
CLASSES = ("a", "b", "c")


def check_measure(measure: Measure, *, classes: tuple[str, ...] = CLASSES, rows: Labelled | None = None) -> None:
    """Check a measure on a made-up frame: its value does not depend on order or on the scale of weights, its influence
    is the derivative of its value, the estimate of a census is exact, and intervals of simple random samples cover.

    ``classes`` are those of the frame, two at least, where the measure names some of its own; ``rows`` are a frame of
    one's own, of 1,000 inputs or more.
    """
    assert isinstance(measure, Measure), f"{type(measure).__name__} does not subclass opmon.abc.Measure"
    assert measure.problems, "a measure is for some problem"
    assert set(measure.problems) <= set(PROBLEMS), f"{measure.problems} are not all problems: {', '.join(PROBLEMS)}"
    assert (type(measure).__doc__ or "").strip(), "a measure explains itself"
    pickle.dumps(measure)  # jobs carry it
    for problem in measure.problems if rows is None else measure.problems[:1]:
        frame = made_up(problem, classes) if rows is None else rows
        measure.check(frame.classes)
        for cell in measure.cells(frame.classes):
            assert not cell.is_table, "a cell of a table is no table"
            _check(cell, frame)


def made_up(problem: Problem, classes: tuple[str, ...] = CLASSES, size: int = SIZE) -> Labelled:
    """A frame with truths, predictions and, of classes, scores."""
    rng = np.random.default_rng(12)
    everyone = np.ones(size, dtype=np.bool_)
    if problem == "regression":
        truth = 20 + 4 * rng.normal(size=size)
        return Labelled(everyone, truth, truth + np.exp(0.3 * rng.normal(size=size)) * rng.normal(size=size))
    if problem == "judged":
        return Labelled(everyone, np.round(rng.beta(3, 1, size), 1), np.full(size, np.nan))
    if problem == "multilabel":
        labels = rng.random((size, len(classes))) < 0.4
        scores = 1 / (1 + np.exp(-(2 * labels - 1 + rng.normal(size=labels.shape))))
        return Labelled(everyone, labels, scores > 0.5, scores, classes)
    logits = 1.4 * rng.normal(size=(size, len(classes)))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    drawn = (chances.cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
    scores = chances**1.3 / (chances**1.3).sum(axis=1, keepdims=True)
    names = np.array(classes)
    return Labelled(everyone, names[drawn], names[scores.argmax(axis=1)], scores, classes)


def _check(measure: Measure, frame: Labelled) -> None:
    name = measure.quantity("days").name
    assert name.strip(), "a quantity has a name"
    assert measure.quantity("days").key, f"nothing of the name {name!r} is left for MLflow's keys"
    rows = frame.only(np.arange(len(frame)) < DRAWS)
    _says_one_thing(measure, rows)
    _knows_what_is_possible(measure, rows)
    _takes_back_what_it_tells(measure, rows)
    if not measure.needs_scores:
        without = Labelled(rows.answered, rows.truth, rows.predicted, None, rows.classes)
        same = measure.value(without, np.ones(DRAWS)), measure.value(rows, np.ones(DRAWS))
        assert math.isclose(*same), f"{name} looks at scores, and does not say that it needs_scores"
    _influences(measure, rows)
    check_foresight(measure, frame)
    _estimates(measure, frame)


def _knows_what_is_possible(measure: Measure, rows: Labelled) -> None:
    ratio, possible = measure.ratio(rows), measure.possible(rows)
    if ratio is None or possible is None:
        return
    found = [
        np.isclose(each.numerator, ratio.numerator) & np.isclose(each.denominator, ratio.denominator)
        for each in possible
    ]
    name = measure.quantity().name
    assert np.any(found, axis=0).all(), f"{name} has a value that possible() leaves out"


def _takes_back_what_it_tells(measure: Measure, rows: Labelled) -> None:
    ratio = measure.ratio(rows)
    if ratio is None or not ratio.counts:
        return
    value, name = ratio.value(np.ones(len(rows))), measure.quantity().name
    again = measure.as_ratio(measure.told(value))
    assert math.isclose(again, value, rel_tol=1e-6, abs_tol=1e-9), (
        f"{name}: as_ratio() is no inverse of told(): {value:.6g} became {again:.6g}"
    )


def _says_one_thing(measure: Measure, rows: Labelled) -> None:
    name, before = measure.quantity().name, pickle.dumps((rows.truth, rows.predicted, rows.scores))
    weights = np.random.default_rng(1).uniform(0.5, 2, len(rows))
    order = np.random.default_rng(2).permutation(len(rows))
    value = measure.value(rows, weights)
    same_rows = pickle.dumps((rows.truth, rows.predicted, rows.scores)) == before
    assert same_rows, f"{name} changes what it is given"
    assert math.isfinite(value), f"{name} is {value}"
    close = {"rel_tol": 1e-9, "abs_tol": 1e-9}
    assert math.isclose(value, measure.value(rows, 7 * weights), **close), f"{name} depends on the scale of weights"
    moved = Labelled(
        rows.answered[order],
        rows.truth[order],
        rows.predicted[order],
        None if rows.scores is None else rows.scores[order],
        rows.classes,
    )
    assert math.isclose(value, measure.value(moved, weights[order]), **close), f"{name} depends on the order of rows"
    twice = np.where(np.arange(len(rows)) < 9, 2.0, 1.0)
    again = rows.only(np.repeat(np.arange(len(rows)), twice.astype(np.int64)))
    same = measure.value(rows, twice), measure.value(again, np.ones(len(again)))
    assert math.isclose(*same, **close), f"{name}: a row of weight 2 counts otherwise than two rows"


def _influences(measure: Measure, rows: Labelled) -> None:
    weights = np.full(len(rows), 1 / len(rows))
    influence = measure.linearised(rows, weights)
    if influence is None:
        return
    name, step = measure.quantity().name, 1e-7
    assert influence.shape == (len(rows),), f"{name}: an influence has one number per row; got {influence.shape}"
    scale = float(np.abs(influence).max()) or 1.0
    total = float(weights @ influence)
    assert abs(total) <= 1e-6 * scale, f"{name}: influences sum to 0 with the weights; got {total:.3g}"
    for k in range(0, len(rows), 17):
        moved = weights + step * (np.arange(len(rows)) == k)
        slope = (measure.value(rows, moved) - measure.value(rows, weights)) / step
        told = float(influence[k])
        assert abs(slope - told) <= 1e-3 * scale, f"{name}: the influence of row {k} is {slope:.4g}, not {told:.4g}"


def _estimates(measure: Measure, frame: Labelled) -> None:
    name, size = measure.quantity().name, len(frame)
    truth = measure.value(frame, np.full(size, 1 / size))
    slow = measure.linearised(frame.only(np.arange(9)), np.ones(9)) is None
    repetitions = SLOW if slow else REPETITIONS  # a bootstrap, or a search for the ends
    whole = _estimate(measure, frame, np.arange(size), size)
    assert math.isclose(whole.value, truth, rel_tol=1e-9, abs_tol=1e-9), f"{name}: a census is exact"
    assert whole.high - whole.low <= 1e-6 * (abs(truth) + 1), f"{name}: the interval of a census has a width"
    rng, found = np.random.default_rng(5), []
    for _ in range(repetitions):
        positions = rng.choice(size, DRAWS, replace=False)
        try:
            found.append(_estimate(measure, frame, positions, size))
        except InputError:
            continue
    assert len(found) >= repetitions / 2, f"{name} can be estimated from {len(found)} of {repetitions} samples only"
    values = np.array([one.value for one in found])
    covered = float(np.mean([one.low <= truth <= one.high for one in found]))
    assert covered >= 0.86, f"{name}: intervals of 95 % hold the truth in {covered:.0%} of samples"
    away, spread = abs(float(values.mean()) - truth), float(values.std(ddof=1))
    limit = (0.3 + 4.5 / math.sqrt(len(values))) * spread + 1e-9
    assert away <= limit, f"{name}: the mean of {len(values)} estimates is {away:.4g} off, their spread is {spread:.4g}"


def _estimate(measure: Measure, frame: Labelled, positions: Positions, size: int) -> Estimate:
    draw = Draw("srs", size, positions, constants={"replacement": np.array(False)})
    rows = frame.only(positions)
    outcomes: Floats = np.zeros(len(positions))
    estimate = measured(SimpleRandomEstimator(), Sample(draw, outcomes), rows, measure)
    assert estimate.low <= estimate.value <= estimate.high, "the estimate lies outside its interval"
    return estimate
