"""The linearised value of a measure of truth and prediction alone for inputs whose truth is not known.

What :mod:`._expecting` does for any measure, by a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.problems import Problem
from opmon.types import Array, Floats
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
    try:
        influence = measure.linearised(rows, masses[there] / masses[there].sum())
    except InputError:
        return None
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


def probed(measure: Measure, problem: Problem, classes: tuple[str, ...]) -> Foreseen | None:
    """What is foreseen of four made-up inputs, of which two are likely to be wrong."""
    names = measure.chances(classes)
    if problem in ("classification", "multilabel") and not names:
        return None
    doubt = np.array([0.1, 0.2, 0.6, 0.7])
    numbers, count = np.arange(4), max(len(classes), 1)
    if problem == "regression":
        return measure.foresee(Prospect(1 + numbers, (), {}, doubt, problem))
    if problem == "judged":
        return measure.foresee(Prospect(np.full(4, np.nan), (), {"0.0": doubt, "1.0": 1 - doubt}, None, problem))
    said: Array
    if problem == "multilabel":
        chances = {name: doubt if place % 2 else 1 - doubt for place, name in enumerate(classes)}
        said = np.stack([chances[name] > 0.5 for name in classes], axis=1)
    else:
        rest = doubt / max(count - 1, 1)
        chances = {name: np.where(numbers % count == place, 1 - doubt, rest) for place, name in enumerate(classes)}
        said = numbers % count
    wanted = {name: chances[name] for name in names if name in chances}
    scores = wanted if measure.needs_scores else {}
    return measure.foresee(Prospect(said, classes, wanted, problem=problem, scores=scores))
