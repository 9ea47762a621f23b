"""The number of labels that a wanted half-width needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtri

from opmon.errors import InputError
from opmon.problems import traits
from opmon.samplers._checks import checked_problem, checked_share
from opmon.samplers.widths import gain, plain_half_width
from opmon.types import Problem


@dataclass(frozen=True)
class Plan:
    """``budget`` labels give ``half_width`` on average, whatever the variables tell beyond what is known of them.

    With simple random sampling it takes ``plain_budget``; ``hopeful_budget`` is enough where the variables tell as much
    as those of other models did, None where it is known how much they tell.
    """

    budget: int
    half_width: float
    plain_budget: int
    hopeful_budget: int | None = None
    notes: tuple[str, ...] = ()
    more: int = 0
    """Draws beyond the budget, for those that nobody answers."""

    @property
    def asked(self) -> int:
        """The budget of the sampler: so many draws have so many answers."""
        return self.budget + self.more


def plan(
    half_width: float,
    size: int,
    *,
    problem: Problem = "classification",
    accuracy: float | None = None,
    spread: float | None = None,
    variables: int = 1,
    level: float = 0.95,
    aim: float = 0.5,
    telling: float | None = None,
) -> Plan:
    """The least budget whose interval is expected to have at most ``half_width``, for a frame of ``size`` inputs.

    Classification: Wilson's interval with the finite-population correction at the expected ``accuracy`` (without one:
    at 0.5, which needs the most labels), which is that of the worst case where inputs may count in part, as with
    scores. Regression, and what counts in part: ``z · spread / sqrt(n) · sqrt(1 − n/N)`` with the standard deviation
    ``spread`` of the squared errors, or of what an input counts, as an earlier round shows it. With ``variables`` to
    sample by, the intervals of the adaptive sampler at ``aim`` are :func:`~.widths.gain` times as wide, by how much the
    variables are ``telling`` of failures: 0 nothing, 1 as much as those of other models. Earlier rounds show it
    (:func:`~.widths.telling_of`); before the first one it is taken for nothing, so that no more is promised than kept.

    >>> plan(0.05, 100_000, accuracy=0.9).plain_budget
    139
    """
    _check(half_width, size, accuracy, level, aim)
    checked_problem(problem)
    if telling is not None and not -2 <= telling <= 2:
        raise InputError(f"telling is how much the variables tell, about 0 to 1; got {telling}")
    width, notes = _plain(problem, size, accuracy, spread, level)

    def least(telling: float) -> int:
        return _least(lambda n: width(n) * gain(n, aim, telling, problem) <= half_width, size)

    plain = _least(lambda n: width(n) <= half_width, size)
    if not variables:
        return Plan(plain, width(plain), plain, None, (*notes, *_whole(plain, size)))
    budget = least(telling or 0.0)
    hopeful = least(1.0) if telling is None and traits(problem).is_share else None
    planned = width(budget) * gain(budget, aim, telling or 0.0, problem)
    return Plan(budget, planned, plain, hopeful, (*notes, *_whole(budget, size)))


@dataclass(frozen=True)
class Shown:
    """What a round showed of what is estimated: ``labels`` of ``inputs`` gave ``half_width``; its standard error was
    ``gain`` times that of as many simple random draws."""

    half_width: float
    labels: int
    inputs: int
    gain: float
    aim: float | None = None
    """The aim of the draws, where another one would have made the interval wider or narrower; None where that is not
    known."""
    simple: bool = False
    """Whether they were simple random draws themselves."""

    def aiming(self, aim: float, problem: Problem) -> Shown:
        """What draws with another aim would have shown: see :func:`~.widths.gain`."""
        if self.aim is None or aim == self.aim:
            return self
        wider = gain(self.labels, aim, 0.0, problem) / gain(self.labels, self.aim, 0.0, problem)
        return replace(self, half_width=wider * self.half_width, gain=wider * self.gain, aim=aim)

    def width(self, n: int, size: int) -> float:
        """The half-width that ``n`` labels of ``size`` inputs are expected to give."""
        return self.half_width * math.sqrt(max(1 / n - 1 / size, 0.0) / (1 / self.labels - 1 / self.inputs))

    def plan(self, half_width: float, size: int) -> Plan:
        """The least budget whose interval is expected to have at most ``half_width``: variances fall as ``1/n − 1/N``.

        >>> found = Shown(0.04, 200, 10_000, gain=0.8).plan(0.02, 10_000)
        >>> found.budget, found.plain_budget
        (755, 1132)
        """
        if not half_width > 0:
            raise InputError(f"the half-width is a number above 0, such as 0.03; got {half_width}")
        budget = _least(lambda n: self.width(n, size) <= half_width, size)
        plain = _least(lambda n: self.width(n, size) <= self.gain * half_width, size)
        notes = (NOTHING_GAINED,) if self.gain >= NO_GAIN and not self.simple else ()
        return Plan(budget, self.width(budget, size), plain, None, (*notes, *_whole(budget, size)))


NO_GAIN = 0.98
NOTHING_GAINED = (
    "the draws of the newest round were no better than simple random ones for this measure: the sampler's labels are "
    "worth more for other ends, such as finding failures"
)


def widths(
    budgets: Sequence[int],
    size: int,
    *,
    problem: Problem = "classification",
    accuracy: float | None = None,
    spread: float | None = None,
    variables: int = 1,
    level: float = 0.95,
    aim: float = 0.5,
    telling: float | None = None,
) -> list[tuple[int, float, float]]:
    """Each budget with the half-width that it is expected to give, and with that of simple random sampling.

    The other way round of :func:`plan`, from the same assumptions.

    >>> [(budget, round(plain, 2)) for budget, _, plain in widths([139, 10_000], 10_000, accuracy=0.9)]
    [(139, 0.05), (10000, 0.0)]
    """
    checked_problem(problem)
    width, _ = _plain(problem, size, accuracy, spread, level)
    factor = [gain(n, aim, telling or 0.0, problem) if variables else 1.0 for n in budgets]
    return [(n, width(n) * each, width(n)) for n, each in zip(budgets, factor, strict=True)]


def _plain(
    problem: Problem, size: int, accuracy: float | None, spread: float | None, level: float
) -> tuple[Callable[[int], float], list[str]]:
    """The half-width of simple random sampling by budget, and what must be said of it."""
    if traits(problem).is_share and spread is None:
        notes = (
            [] if accuracy is not None else ["no accuracy was expected: planned for 0.5, which needs the most labels"]
        )
        p = 0.5 if accuracy is None else 1 - accuracy
        return lambda n: plain_half_width(p, n, size, level), notes
    if spread is None or not (spread > 0 and math.isfinite(spread)):
        raise InputError(
            f"spread is a standard deviation, a number above 0 which an earlier round shows: of the squared errors of "
            f"a regression, or of what an input counts; got spread={spread}"
        )
    unit = float(ndtri(0.5 + level / 2)) * spread
    long_tailed = ["for long-tailed errors and small budgets the interval is wider than planned"]
    notes = [] if traits(problem).is_share else long_tailed
    return lambda n: unit / math.sqrt(n) * math.sqrt(max(1 - n / size, 0.0)), notes


def _whole(budget: int, size: int) -> tuple[str, ...]:
    return ("only labelling the whole frame is enough",) if budget == size else ()


def _check(half_width: float, size: int, accuracy: float | None, level: float, aim: float) -> None:
    checked_share(aim, "aim")
    if not half_width > 0:
        raise InputError(f"the half-width is a number above 0, such as 0.03; got {half_width}")
    if size < 1:
        raise InputError(f"a frame has at least one input; got size={size}")
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise InputError(f"the expected accuracy lies in [0, 1], or is left out; got {accuracy}")
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1; got {level}; 0.95 is usual")


def _least(enough: Callable[[int], bool], size: int) -> int:
    """The least ``n`` in 1..size with ``enough(n)``, which holds for ``size`` and is monotone."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
