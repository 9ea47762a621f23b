"""The first steps of every sampler: checking arguments and the auxiliary variable, labelling a small frame whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from opmon.abc import Sampler
from opmon.errors import InputError
from opmon.problems import PROBLEMS, Problem
from opmon.types import Draw, Frame, Numbers

Prepared = Callable[[np.random.Generator], Draw]
"""The result of a sampler's ``prepare(frame, budget)``: all but what depends on chance is done, for simulations that
draw many times from one frame. ``draw(frame, budget, rng)`` is ``prepare(frame, budget)(rng)``."""

EXTREME = 1e100
CHUNK = 1 << 16
"""Inputs handled at a time, so that a pass over the frame never needs a second copy of it."""


def checked_budget(budget: int) -> int:
    """The number of draws asked for, or an error where it is none."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise InputError(f"the budget is a whole number of draws, at least 1; got {budget!r}")
    return int(budget)


def checked_share(value: float, name: str, *, one_allowed: bool = True) -> float:
    """``value`` where it lies in [0, 1] (or [0, 1)), else an error that names the parameter."""
    if not (0 <= value < 1 or (one_allowed and value == 1)):
        raise InputError(f"{name} must lie in [0, 1{']' if one_allowed else ')'}; got {value!r}")
    return float(value)


def checked_problem(problem: Problem) -> Problem:
    """The problem where it is one of those there are, else an error that names them."""
    if problem not in PROBLEMS:
        raise InputError(f"the problem is one of {', '.join(PROBLEMS)}; got {problem!r}")
    return problem


def checked_count(value: int, name: str, most: int) -> int:
    """``value`` where it is a whole number in 1..``most``, else an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(f"{name} must be a whole number in 1..{most}; got {value!r}")
    return value


def chunks(size: int, length: int = CHUNK) -> Iterator[slice]:
    """Consecutive slices that cover ``0..size``."""
    for start in range(0, size, length):
        yield slice(start, min(start + length, size))


def auxiliary(frame: Frame, name: str) -> Numbers:
    """The auxiliary variable ``name``, every value of it finite and not negative.

    Only its proportions matter: where sums or products of it could leave the range of a double, it comes divided by
    its largest value.
    """
    values = frame.variable(name)
    largest = 0.0
    for part in chunks(len(values)):
        piece = values[part]
        good = np.isfinite(piece) & (piece >= 0)
        if not good.all():
            at = part.start + int(np.argmin(good))
            raise InputError(
                f"variable {name!r} must be finite and >= 0 for every input (larger = more suspicious); "
                f"got {values[at]} at position {at}. Mend what computes it, or draw with the sampler 'srs'."
            )
        largest = max(largest, float(piece.max()))
    return values if largest == 0 or 1 / EXTREME < largest < EXTREME else values / largest


def is_whole(frame: Frame, budget: int) -> bool:
    """Whether the budget covers the whole frame."""
    return frame.size <= checked_budget(budget)


def take_all(frame: Frame, rng: np.random.Generator) -> Draw:
    """Every input once, in random order: the design of a frame that is no larger than its budget."""
    if frame.size < 1:
        raise InputError("the frame is empty; there is nothing to draw from")
    return Draw("srs", frame.size, rng.permutation(frame.size), constants={"replacement": np.array(False)})


@dataclass(frozen=True)
class ByVariable(Sampler):
    """A sampler by one auxiliary variable: a frame no larger than the budget is labelled whole."""

    variable: str = "confidence"
    """The auxiliary variable to draw by."""

    def drawn_by(self) -> tuple[str, ...]:
        return (self.variable,)

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return self.prepare(frame, budget)(rng)

    def prepare(self, frame: Frame, budget: int) -> Prepared:
        values = auxiliary(frame, self.variable)
        return (lambda rng: take_all(frame, rng)) if is_whole(frame, budget) else self.prepared(values, budget)

    @abstractmethod
    def prepared(self, values: Numbers, budget: int) -> Prepared:
        """The draws of ``budget`` from more inputs than that; ``values`` holds the variable, checked."""
