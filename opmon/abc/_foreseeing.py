"""The linearised value of a measure for inputs whose truth is not known, over the truths that are possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.types import Floats, Numbers
from opmon.types.labelled import Labelled
from opmon.types.prospect import Foreseen, Prospect

if TYPE_CHECKING:
    from opmon.abc.measure import Measure

OTHER = "\0none of them"
"""The truth of an input that is of none of the classes whose chance is known."""
KINDS = 12
"""More kinds than this are not told apart: each would want strata of its own."""
ALIKE = 1e-9
CHUNK = 1 << 16
LEVELS = 64
"""Expected errors are put in so many classes of equal size, of which ``EACH`` inputs stand for all."""
EACH = 8
NODES, MASSES = np.polynomial.hermite_e.hermegauss(9)
"""Errors relative to their standard deviation, and how likely each is, as of a normal distribution."""


def of_classes(measure: Measure, prospect: Prospect) -> Foreseen | None:
    """Exactly, where the value depends on truth and prediction alone: a table of both has all of its values.

    The table is linearised with the mass that the chances give to each of its cells.
    """
    names = measure.chances(prospect.classes)
    if not names or not all(name in prospect.chances for name in names):
        return None
    said = prospect.predicted.astype(np.int64) + 1
    table = _table(measure, names, prospect, _masses(prospect, names, said))
    if table is None:
        return None
    mean, spread = np.empty(len(said), np.float32), np.empty(len(said), np.float32)
    for start in range(0, len(said), CHUNK):
        part = slice(start, start + CHUNK)
        chances, values = _chances(prospect, names, part), table[:, said[part]]
        first = (chances * values).sum(axis=0)
        mean[part] = first
        spread[part] = np.sqrt(np.maximum((chances * (values - first) ** 2).sum(axis=0), 0.0))
    return Foreseen(mean, spread, _kinds(table, said)[said], of_part=_is_of_part(measure, prospect.classes))


def _is_of_part(measure: Measure, classes: tuple[str, ...]) -> bool:
    """Whether inputs count for the measure by what is not known of them."""
    every = np.array(classes)
    rows = Labelled(np.ones(len(every), dtype=np.bool_), every, every, None, classes)
    ratio = measure.ratio(rows)
    return ratio is None or not ratio.is_mean


def _chances(prospect: Prospect, names: tuple[str, ...], part: slice) -> Floats:
    """One row per class of ``names`` and one for all others; columns sum to 1."""
    own = np.stack([np.asarray(prospect.chances[name][part], dtype=np.float64) for name in names])
    rest = np.maximum(1 - own.sum(axis=0), 0.0)
    both = np.concatenate([own, rest[None]])
    return np.asarray(both / both.sum(axis=0))


def _masses(prospect: Prospect, names: tuple[str, ...], said: NDArray[np.int64]) -> Floats:
    """The expected number of inputs for each truth and prediction."""
    masses = np.zeros((len(names) + 1, len(prospect.classes) + 1))
    for start in range(0, len(said), CHUNK):
        part = slice(start, start + CHUNK)
        for row, chance in zip(masses, _chances(prospect, names, part), strict=True):
            row += np.bincount(said[part], chance, minlength=len(row))
    return masses


def _table(measure: Measure, names: tuple[str, ...], prospect: Prospect, masses: Floats) -> Floats | None:
    """The linearised value by truth and prediction, 0 where there is no such input."""
    truths, answers = np.array([*names, OTHER]), np.array([OTHER + " said", *prospect.classes])
    there = masses > 0
    every = len(names) == len(prospect.classes)
    if every:
        there[-1], there[:, 0] = False, False  # what rounding leaves, and answers that are no class
    y, said = np.nonzero(there)
    if not len(y):
        return None
    rows = Labelled(np.ones(len(y), dtype=np.bool_), truths[y], answers[said], None, prospect.classes)
    influence = measure.linearised(rows, masses[there] / masses[there].sum())
    if influence is None or not np.isfinite(influence).all() or not influence.any():
        return None
    table = np.zeros(masses.shape)
    table[there] = influence
    return table


def _kinds(table: Floats, said: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A kind for each prediction: those with the same values are one."""
    rounded = np.round(table / (ALIKE * np.abs(table).max()))
    there = np.unique(said)
    _, first, group = np.unique(rounded[:, there], axis=1, return_index=True, return_inverse=True)
    of = np.zeros(table.shape[1], np.uint8)
    if len(first) <= KINDS:
        of[there] = np.argsort(np.argsort(first))[group.ravel()]  # numbered by their first prediction, in every wave
    return of


def of_numbers(measure: Measure, prospect: Prospect) -> Foreseen | None:
    """By the expected error, from inputs of every size of it with errors to either side."""
    if prospect.error is None or not np.ptp(prospect.error) > 0:
        return None
    order = np.argsort(prospect.error, kind="stable")
    level = np.arange(len(order)) * min(LEVELS, len(order)) // len(order)
    first = np.flatnonzero(np.diff(level, prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    chosen = (first[:, None] + (np.arange(EACH) + 0.5) / EACH * sizes[:, None]).astype(np.int64)
    places = order[chosen.ravel()]
    scale = np.sqrt(np.pi / 2)  # the standard deviation of a normal error whose mean size is 1
    predicted, error = prospect.predicted[places].astype(np.float64), prospect.error[places].astype(np.float64)
    truth = predicted[:, None] + scale * error[:, None] * NODES
    rows = Labelled(
        np.ones(truth.size, dtype=np.bool_), truth.ravel(), np.repeat(predicted, len(NODES)), None, prospect.classes
    )
    stands = np.repeat(np.repeat(sizes / EACH, EACH), len(NODES)) * np.tile(MASSES / MASSES.sum(), len(places))
    influence = measure.linearised(rows, stands / stands.sum())
    if influence is None or not np.isfinite(influence).all():
        return None
    return _along(prospect.error, order[chosen], influence.reshape(len(first), EACH, len(NODES)))


def _along(error: Numbers, chosen: NDArray[np.int64], influence: Floats) -> Foreseen:
    """Mean and standard deviation at every expected error, from those at some."""
    mass = MASSES / MASSES.sum() / EACH
    mean = (influence @ mass).sum(axis=1)
    second = (influence**2 @ mass).sum(axis=1)
    at = error[chosen].mean(axis=1)
    spread = np.sqrt(np.maximum(second - mean**2, 0.0))
    return Foreseen(
        np.interp(error, at, mean).astype(np.float32),
        np.interp(error, at, spread).astype(np.float32),
        np.zeros(len(error), np.uint8),
    )
