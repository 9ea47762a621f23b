"""What is foreseen of a frame: the model's own chances, as far as labels bear them out, and the errors to expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon._ridge import fit
from opmon.abc import Measure
from opmon.samplers import _proxy
from opmon.samplers._checks import chunks
from opmon.types import Array, Frame, Numbers, Sample
from opmon.types.prospect import Foreseen, Prospect

TEMPER = 0.7
"""The slope of the true log odds along the model's own that is expected before labels: models are too sure."""
PRECISION = 2.0
"""How firmly it is expected: a few dozen labels of either outcome overthrow it."""
SURE = 1e-7
"""No chance is taken to be nearer to 0 or 1."""
FEW = 10
"""With fewer labels nothing is learned from them."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Inputs whose truth is known, of this round or of rounds before: one entry each."""

    truth: NDArray[np.str_]
    predicted: NDArray[np.str_]
    chances: Mapping[str, Numbers]
    """By class what the model held its chance for."""

    def __len__(self) -> int:
        return len(self.truth)


def foresee(
    measure: Measure, frame: Frame, chances: Mapping[str, Numbers], classes: tuple[str, ...], seen: Seen | None
) -> Foreseen | None:
    """What a measure of classes is likely to be for each input of ``frame``; None where no sampler can aim at it.

    ``chances`` are the model's own, by class, for every input. They are drawn towards even ones (``TEMPER``) until
    labels say how far they can be trusted: a ridge logistic regression of the truth on the log odds and on whether the
    class was predicted, for each class.
    """
    if frame.predictions is None or not chances:
        return None
    said = numbered(frame.predictions, classes)
    learned = {name: _calibrated(values, said == _place(name, classes), name, seen) for name, values in chances.items()}
    return measure.foresee(Prospect(said, classes, learned))


def foresee_numbers(measure: Measure, frame: Frame, sample: Sample) -> Foreseen | None:
    """The same of a regression: errors are learned from the labels so far, along the variables of the frame."""
    names = tuple(frame.variables)
    variables = _proxy.coded(frame, names)
    if frame.predictions is None or not variables or sample.answered.sum() < FEW or not np.nansum(sample.outcomes):
        return None
    sizes = Sample(sample.draw, np.sqrt(sample.outcomes), "regression", sample.propensity)
    parts, _ = _proxy.learned(variables, sizes)
    tables = [variable.table(part) for variable, part in zip(variables, parts, strict=True)]
    error = np.empty(frame.size, np.float32)
    for part in chunks(frame.size):
        error[part] = _proxy.scores(variables, tables, part)
    error = np.exp(error - error.max())
    known = sample.answered
    scale = float(np.sqrt(sample.outcomes[known]).mean()) / float(error[sample.draw.positions[known]].mean())
    return measure.foresee(Prospect(np.asarray(frame.predictions, dtype=np.float64), (), {}, error * scale))


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


def _place(name: str, classes: tuple[str, ...]) -> int:
    return classes.index(name) if name in classes else -2


def _calibrated(chance: Numbers, said: NDArray[np.bool_], name: str, seen: Seen | None) -> Numbers:
    known = None if seen is None else np.isfinite(seen.chances[name]) if name in seen.chances else None
    if seen is None or known is None or known.sum() < FEW:
        level, slope, own = 0.0, TEMPER, 0.0
    else:
        odds = _log_odds(seen.chances[name][known])
        X = np.stack([np.ones(len(odds)), odds, seen.predicted[known] == name], axis=1).astype(np.float64)
        y = (seen.truth[known] == name).astype(np.float64)
        level, slope, own = fit(X, y, np.array([0.0, TEMPER, 0.0]), PRECISION, True)
    found = np.empty(len(chance), np.float32)
    for part in chunks(len(chance)):
        odds = level + slope * _log_odds(chance[part]) + own * said[part]
        found[part] = 1 / (1 + np.exp(-np.clip(odds, -20, 20)))
    return found


def _log_odds(chance: Numbers) -> NDArray[np.float64]:
    """The log odds of chances; even where one is not known."""
    p = np.clip(np.nan_to_num(np.asarray(chance, dtype=np.float64), nan=0.5), SURE, 1 - SURE)
    return np.asarray(np.log(p / (1 - p)))
