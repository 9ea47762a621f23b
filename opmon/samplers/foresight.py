"""What is foreseen of a frame: chances of truths, as far as labels bear them out, and the errors to expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon._ridge import fit
from opmon.abc import Measure
from opmon.samplers._checks import chunks
from opmon.samplers._learning import expected_errors, likely_scores, likely_wrong
from opmon.types import Array, Frame, Numbers, Problem, Sample
from opmon.types.prospect import Foreseen, Prospect

TEMPER = 0.7
"""The slope of the true log odds along the model's own that is expected before labels: models are too sure."""
PRECISION = 2.0
"""How firmly it is expected: a few dozen labels of either outcome overthrow it."""
SURE = 1e-7
"""No chance is taken to be nearer to 0 or 1."""
SURPRISE = 0.005
"""Of measures that are means of losses by scores, the share of inputs whose truth may be anything, however sure the
model is: a few failures of a sure model make up much of a log loss, and few labels show how rare they are."""
FEW = 10
"""With fewer labels nothing is learned from them."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Inputs whose truth is known, of this round or of rounds before: one entry each."""

    truth: Array
    """The class; of several labels one row per input that says of each class whether it is there."""
    predicted: Array
    """Likewise."""
    chances: Mapping[str, Numbers]
    """By class what the model held its chance for."""

    def __len__(self) -> int:
        return len(self.truth)


def foresee(
    measure: Measure,
    frame: Frame,
    chances: Mapping[str, Numbers],
    classes: tuple[str, ...],
    seen: Seen | None,
    sample: Sample | None = None,
    problem: Problem = "classification",
) -> Foreseen | None:
    """What a measure of classes is likely to be for each input of ``frame``; None where no sampler can aim at it.

    ``chances`` are the model's own, by class, for every input. They are drawn towards even ones (``TEMPER``) until
    labels say how far they can be trusted: a ridge logistic regression of the truth on the log odds and on whether the
    class was predicted, for each class. Without any, how likely the model is wrong is learned from the labels of
    ``sample``, along the variables; of measures of scores nothing is then foreseen. Predictions of several labels are
    one row per input that says of each class whether it is predicted.
    """
    if frame.predictions is None:
        return None
    said = frame.predictions if problem == "multilabel" else numbered(frame.predictions, classes)
    if chances:
        members = {name: _of(said, classes, name) for name in chances}
        learned = {name: _calibrated(values, members[name], classes, name, seen) for name, values in chances.items()}
    elif sample is None or seen is None or measure.needs_scores or len(seen) < FEW:
        return None
    else:
        wrong = likely_wrong(frame, sample, FEW)
        if wrong is None:
            return None
        learned = _by_errors(wrong, said, classes, seen)
    scores = chances if measure.needs_scores else {}
    if scores and problem == "classification" and measure.of_all(problem, classes):
        even = SURPRISE / len(classes)
        learned = {name: (1 - SURPRISE) * values + even for name, values in learned.items()}
    return measure.foresee(Prospect(said, classes, learned, problem=problem, scores=scores))


def foresee_numbers(measure: Measure, frame: Frame, sample: Sample) -> Foreseen | None:
    """The same of a regression: errors are learned from the labels so far, along the variables of the frame."""
    error = None if frame.predictions is None else expected_errors(frame, sample, FEW)
    if frame.predictions is None or error is None:
        return None
    predicted = np.asarray(frame.predictions, dtype=np.float64)
    return measure.foresee(Prospect(predicted, (), {}, error, problem="regression"))


def foresee_scores(measure: Measure, frame: Frame, sample: Sample) -> Foreseen | None:
    """The same of outputs that people judge: how likely each score is, learned from those so far."""
    chances = likely_scores(frame, sample, FEW)
    if chances is None:
        return None
    return measure.foresee(Prospect(np.full(frame.size, np.nan), (), chances, problem="judged"))


def numbered(names: Array, classes: tuple[str, ...]) -> NDArray[np.int16]:
    """The number of each name among the classes, −1 for one that is none of them."""
    order = np.argsort(np.array(classes, dtype=np.str_))
    known = np.array(classes, dtype=np.str_)[order]
    found = np.empty(len(names), np.int16)
    for part in chunks(len(names)):
        own = np.asarray(names[part], dtype=np.str_)
        at = np.minimum(np.searchsorted(known, own), len(known) - 1)
        found[part] = np.where(known[at] == own, order[at], -1)
    return found


def _of(values: Array, classes: tuple[str, ...], name: str) -> NDArray[np.bool_]:
    """Which inputs are of a class, or have it."""
    if name not in classes:
        return np.zeros(len(values), np.bool_)
    place = classes.index(name)
    if values.ndim == 2:
        return np.asarray(values[:, place], dtype=np.bool_)
    return np.asarray(values == (name if values.dtype.kind in "UO" else place))


def _calibrated(
    chance: Numbers, said: NDArray[np.bool_], classes: tuple[str, ...], name: str, seen: Seen | None
) -> Numbers:
    known = None if seen is None else np.isfinite(seen.chances[name]) if name in seen.chances else None
    if seen is None or known is None or known.sum() < FEW:
        level, slope, own = 0.0, TEMPER, 0.0
    else:
        odds = _log_odds(seen.chances[name][known])
        members = _of(seen.predicted, classes, name)[known]
        X = np.stack([np.ones(len(odds)), odds, members], axis=1).astype(np.float64)
        y = _of(seen.truth, classes, name)[known].astype(np.float64)
        level, slope, own = fit(X, y, np.array([0.0, TEMPER, 0.0]), PRECISION, True)
    found = np.empty(len(chance), np.float32)
    for part in chunks(len(chance)):
        odds = level + slope * _log_odds(chance[part]) + own * said[part]
        found[part] = 1 / (1 + np.exp(-np.clip(odds, -20, 20)))
    return found


def _by_errors(wrong: Numbers, said: Array, classes: tuple[str, ...], seen: Seen) -> dict[str, Numbers]:
    """The chance of each class by how likely the model is wrong.

    Of one class, another is as likely as it is frequent among the truths seen; of several, each label is wrong as often
    as it was where any was.
    """
    chances: dict[str, Numbers] = {}
    if said.ndim == 2:
        lost = np.asarray(seen.truth != seen.predicted)
        often = (lost.sum(axis=0) + 0.5) / (lost.any(axis=1).sum() + 1)
        for place, name in enumerate(classes):
            off = np.minimum(wrong * often[place], 1.0)
            chances[name] = np.where(said[:, place], 1 - off, off).astype(np.float32)
        return chances
    share = np.array([1.0 + np.count_nonzero(seen.truth == name) for name in classes])
    share /= share.sum()
    others = np.append(1 - share, 1.0)[np.asarray(said, dtype=np.int64)]
    for place, name in enumerate(classes):
        chances[name] = np.where(said == place, 1 - wrong, wrong * share[place] / others).astype(np.float32)
    return chances


def _log_odds(chance: Numbers) -> NDArray[np.float64]:
    """The log odds of chances; even where one is not known."""
    p = np.clip(np.nan_to_num(np.asarray(chance, dtype=np.float64), nan=0.5), SURE, 1 - SURE)
    return np.asarray(np.log(p / (1 - p)))
