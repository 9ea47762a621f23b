"""What a measure foresees of inputs without labels agrees with what its influence is once their truth is known."""

from __future__ import annotations

import math

import numpy as np

from opmon.abc import Measure, influence_of
from opmon.errors import InputError
from opmon.types import Array, Floats, Labelled, Problem
from opmon.types.prospect import Foreseen, Prospect

SOME = 600
DRAWS = 60
FACTOR = 2.0
"""What is foreseen of the size of influences is right up to this factor; the tails of errors are made up."""


def check_foresight(measure: Measure, frame: Labelled) -> None:
    """Check that what a measure foresees does not depend on the order of inputs, is finite, and is of the size that its
    influence has when truths are drawn by the chances it was given. Nothing of one that foresees nothing."""
    rows = frame.only(np.arange(min(SOME, len(frame))))
    before = _prospect(measure, rows)
    found = None if before is None else measure.foresee(before)
    if before is None or found is None:
        return
    name = measure.quantity().name
    assert len(found) == len(rows), f"{name} foresees {len(found)} of {len(rows)} inputs"
    assert np.isfinite(found.mean).all(), f"{name} foresees a mean that is no number"
    assert np.isfinite(found.spread).all(), f"{name} foresees a spread that is no number"
    assert (found.spread >= 0).all(), f"{name} foresees a spread below 0"
    order = np.random.default_rng(3).permutation(len(rows))
    again = measure.foresee(_moved(before, order))
    assert again is not None, f"{name} foresees nothing of the same inputs in another order"
    scale = float(np.abs(found.spread).max()) or 1.0
    same = np.allclose(again.spread, found.spread[order], atol=1e-3 * scale)
    assert same, f"{name}: what is foreseen of an input depends on the order of inputs"
    _of_that_size(measure, rows, before, found)


def _of_that_size(measure: Measure, rows: Labelled, prospect: Prospect, found: Foreseen) -> None:
    rng, sums, count = np.random.default_rng(4), 0.0, 0
    weights = np.full(len(rows), 1 / len(rows))
    for _ in range(DRAWS):
        truth = _drawn(prospect, rng)
        own = Labelled(rows.answered, truth, rows.predicted, rows.scores, rows.classes)
        try:
            influence = influence_of(measure, own, weights)
        except InputError:  # none of a class among these truths
            continue
        if influence is not None:
            sums, count = sums + float((influence**2).mean()), count + 1
    if count < DRAWS / 2:
        return
    told = math.sqrt(float((found.mean.astype(np.float64) ** 2 + found.spread.astype(np.float64) ** 2).mean()))
    real = math.sqrt(sums / count)
    name = measure.quantity().name
    assert real / FACTOR <= told <= real * FACTOR, f"{name} foresees values of size {told:.4g}; they are {real:.4g}"


def _prospect(measure: Measure, rows: Labelled) -> Prospect | None:
    """What would be known of the rows before their labels; None where their problem is not one of chances."""
    problem = _problem(rows)
    if problem == "regression":
        error = 0.2 + np.abs(np.asarray(rows.predicted, np.float64)) / np.abs(rows.predicted).max()
        return Prospect(rows.predicted, (), {}, error, problem)
    if problem == "judged":
        chance = np.linspace(0.1, 0.9, len(rows))
        return Prospect(
            rows.predicted, (), {"0.0": 1 - chance, "0.6": 0.7 * chance, "1.0": 0.3 * chance}, None, problem
        )
    if rows.scores is None:
        return None
    given = np.clip(np.asarray(rows.scores, np.float64), 0.02, 0.98)
    if problem == "classification":
        given = given / given.sum(axis=1, keepdims=True)
    names = [name for name in measure.chances(rows.classes) if name in rows.classes]
    chances = {name: given[:, rows.classes.index(name)] for name in names}
    own = {name: np.asarray(rows.scores[:, rows.classes.index(name)], np.float64) for name in names}
    said = rows.predicted
    if problem == "classification":
        said = np.array([[*rows.classes, each].index(each) for each in rows.predicted.tolist()])
        said = np.where(said < len(rows.classes), said, -1)
    return Prospect(said, rows.classes, chances, None, problem, own if measure.needs_scores else {})


def _problem(rows: Labelled) -> Problem:
    if rows.truth.ndim == 2:
        return "multilabel"
    if rows.truth.dtype.kind in "UO":
        return "classification"
    return "judged" if np.isnan(np.asarray(rows.predicted, np.float64)).all() else "regression"


def _moved(prospect: Prospect, order: np.ndarray) -> Prospect:
    return Prospect(
        prospect.predicted[order],
        prospect.classes,
        {name: values[order] for name, values in prospect.chances.items()},
        None if prospect.error is None else prospect.error[order],
        prospect.problem,
        {name: values[order] for name, values in prospect.scores.items()},
    )


def _drawn(prospect: Prospect, rng: np.random.Generator) -> Array:
    """Truths by the chances that the prospect has; classes whose chance is not wanted are as predicted, or another."""
    size = len(prospect)
    if prospect.error is not None:
        return np.asarray(prospect.predicted + math.sqrt(math.pi / 2) * prospect.error * rng.normal(size=size))
    if prospect.problem == "multilabel":
        truth = np.array(prospect.predicted, dtype=np.bool_)
        for name, there in prospect.chances.items():
            truth[:, prospect.classes.index(name)] = rng.random(size) < there
        return truth
    names = list(prospect.chances)
    others = [name for name in prospect.classes if name not in names][:1]
    chance: Floats = np.stack([np.asarray(prospect.chances[name], np.float64) for name in names], axis=1)
    if others:
        chance = np.concatenate([chance, 1 - chance.sum(axis=1, keepdims=True)], axis=1)
    at = (chance.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1).clip(max=chance.shape[1] - 1)
    if prospect.problem == "judged":
        return np.asarray(np.array([float(name) for name in names])[at])
    return np.asarray(np.array([*names, *others])[at])
