"""How far annotators agree: per cent, Cohen's and Fleiss' kappa, Krippendorff's alpha, with missing answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from scipy.special import stdtrit

from opmon.errors import InputError
from opmon.wording import counted

Units = Sequence[Sequence[str | None]]
"""One row per input, one column per annotator; None where an annotator gave no answer."""
Scale = Literal["nominal", "interval"]
A = TypeVar("A")

FEW = 30
"""Inputs with two answers or more; with fewer the interval is told to be of few."""


@dataclass(frozen=True)
class Agreement:
    """A measure of agreement. ``value`` is None where the answers leave it undefined, the interval where it has no
    meaning: with a single input, or with no spread among the answers."""

    value: float | None
    units: int
    """The inputs that have two answers or more."""
    low: float | None = None
    high: float | None = None
    note: str = ""


def percent_agreement(units: Units, level: float = 0.95) -> Agreement:
    """The share of pairs of answers to one input that are the same, every input counting once.

    >>> percent_agreement([("a", "a"), ("a", "b"), ("b", None)]).value
    0.5
    """
    return _jackknifed(_pairable(units), _same, level)


def cohen(units: Units, level: float = 0.95) -> Agreement:
    """Cohen's kappa of two annotators: ``(p_o − p_e)/(1 − p_e)``, ``p_e = Σ_c p_1c p_2c``, over inputs both answered.

    Undefined where both only ever gave one and the same class. (Cohen, Educational and Psychological Measurement 20,
    1960.)

    >>> rows = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    >>> round(cohen(rows).value, 3)
    0.4
    """
    if any(len(unit) != 2 for unit in units):
        raise InputError("Cohen's kappa is for two annotators: give two answers per input, or take Fleiss' kappa")
    return _jackknifed(_pairable(units), _cohen, level)


def fleiss(units: Units, level: float = 0.95) -> Agreement:
    """Fleiss' kappa: ``(P̄ − P_e)/(1 − P_e)``, ``P̄`` the mean agreement of pairs, ``P_e = Σ_c p_c²``.

    Inputs need not have equally many answers: ``p_c`` is the share of class ``c`` among all answers to inputs that have
    two or more. (Fleiss, Psychological Bulletin 76, 1971.)
    """
    return _jackknifed(_pairable(units), _fleiss, level)


def krippendorff(units: Units, scale: Scale = "nominal", level: float = 0.95) -> Agreement:
    """Krippendorff's alpha, ``1 − D_o/D_e``: disagreement observed within inputs by that expected between any answers.

    ``nominal``: two answers differ or not. ``interval``: they differ by the square of their difference, for numbers.
    An input with one answer tells nothing. (Krippendorff, Content Analysis, 2004, chapter 11.)
    """
    paired = _pairable(units)
    if scale == "nominal":
        return _jackknifed(paired, _nominal, level)
    try:
        numbers = [[float(answer) for answer in unit] for unit in paired]
    except ValueError as exc:
        raise InputError(f"the scale 'interval' needs numbers for answers: {exc}; take 'nominal' for classes") from exc
    return _jackknifed(numbers, _interval, level)


def _pairable(units: Units) -> list[list[str]]:
    heard = ([answer for answer in unit if answer is not None] for unit in units)
    return [unit for unit in heard if len(unit) > 1]


def _jackknifed(units: list[list[A]], measure: Callable[[list[list[A]]], float | None], level: float) -> Agreement:
    """The measure with the jackknife's interval over inputs, Student's with one degree of freedom less than inputs.

    It never leaves [−1, 1]. There is none for less than two inputs, nor where leaving one out leaves nothing defined.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")
    value, n = (measure(units) if units else None), len(units)
    found = Agreement(value, n)
    if value is None or n < 2:
        return replace(found, note="no input has two answers" if not n else "the answers leave it undefined or alone")
    alike = Counter(tuple(map(str, unit)) for unit in units)
    places = {tuple(map(str, unit)): at for at, unit in enumerate(units)}
    without = {key: measure(units[:at] + units[at + 1 :]) for key, at in places.items()}
    if any(each is None for each in without.values()):
        return replace(found, note="a single input decides it: no interval")
    values = np.array([float(without[key] or 0.0) for key in alike])
    counts = np.array(list(alike.values()), dtype=np.float64)
    mean = float(counts @ values) / n
    error = math.sqrt((n - 1) / n * float(counts @ (values - mean) ** 2))
    if error == 0:
        return replace(found, note="all inputs say the same: no interval")
    radius = float(stdtrit(n - 1, 0.5 + level / 2)) * error
    note = f"from {counted(n, 'input')} only" if n < FEW else ""
    return replace(found, low=max(value - radius, -1.0), high=min(value + radius, 1.0), note=note)


def _same(units: list[list[str]]) -> float | None:
    return float(np.mean([_pairs(Counter(unit), len(unit)) for unit in units])) if units else None


def _pairs(counts: Counter[str], size: int) -> float:
    return sum(many * (many - 1) for many in counts.values()) / (size * (size - 1))


def _kappa(observed: float, by_chance: float) -> float | None:
    return None if by_chance >= 1 else (observed - by_chance) / (1 - by_chance)


def _cohen(units: list[list[str]]) -> float | None:
    if not units:
        return None
    first, second = (Counter(unit[side] for unit in units) for side in (0, 1))
    by_chance = sum(first[each] * second[each] for each in first) / len(units) ** 2
    return _kappa(sum(one == other for one, other in units) / len(units), by_chance)


def _fleiss(units: list[list[str]]) -> float | None:
    if not units:
        return None
    total = Counter(answer for unit in units for answer in unit)
    answers = total.total()
    return _kappa(_same(units) or 0.0, sum((many / answers) ** 2 for many in total.values()))


def _nominal(units: list[list[str]]) -> float | None:
    total = Counter(answer for unit in units for answer in unit)
    n = total.total()
    expected = n * n - sum(many * many for many in total.values())
    observed = sum(len(unit) * (1 - _pairs(Counter(unit), len(unit))) for unit in units)
    return None if not expected else 1 - (n - 1) * observed / expected


def _interval(units: list[list[float]]) -> float | None:
    values = np.array([answer for unit in units for answer in unit])
    n = len(values)
    expected = 2 * n * float(values.var()) / max(n - 1, 1)
    observed = sum(2 * len(unit) ** 2 * float(np.var(unit)) / (len(unit) - 1) for unit in units) / max(n, 1)
    return None if expected <= 0 else 1 - observed / expected
