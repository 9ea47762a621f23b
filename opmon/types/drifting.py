"""What drifted in a round, and whether the model became worse with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Part = Literal["inputs", "predictions", "scores"]
PARTS: tuple[Part, ...] = ("inputs", "predictions", "scores")
Loss = Literal["loss", "none seen", "not known"]


@dataclass(frozen=True)
class DriftedPart:
    """What is known of the inputs, of the predictions, or of the scores."""

    part: Part
    compared: int
    """So many columns were compared."""
    drifted: tuple[str, ...]
    """Those that drifted, corrected for how many were looked at."""


@dataclass(frozen=True)
class SliceDrift:
    """A slice, or the inputs of one predicted class, beside the rounds before."""

    name: str
    share: float | None
    """Its share of the round's inputs; None where it is not known yet."""
    share_before: float | None
    compared: int
    """So many columns were compared inside of it; 0 where none could be."""
    drifted: tuple[str, ...]
    """Those that drifted inside of it, corrected for all columns of all slices."""
    worse_by: float | None
    """By how much the measure is worse there than before; None where it is not known."""
    worse_at_least: float | None
    """By how much at least, with one error over all slices; None where it is not surely worse."""


@dataclass(frozen=True)
class RoundDrift:
    """What drifted in a round, and whether with loss."""

    parts: tuple[DriftedPart, ...]
    loss: Loss
    worse_by: float | None
    """By how much the main measure is worse than in the rounds that it is compared with; below 0: better."""
    low: float | None
    high: float | None
    against: tuple[int, ...]
    """The rounds that it is compared with."""
    slices: tuple[SliceDrift, ...]
    """Those that are surely worse first, then those in which inputs drifted."""
    words: tuple[str, ...]
    """All of it in sentences."""

    @property
    def drifted(self) -> bool:
        return any(part.drifted for part in self.parts)


def surely(p_values: Sequence[float], error: float = 0.05) -> list[bool]:
    """Which of many tests are rejected with one error over all of them, by Holm's procedure.

    >>> surely([0.04, 0.001, 0.02]), surely([])
    ([True, True, True], [])
    >>> surely([0.04, 0.03, 0.2])
    [False, False, False]
    """
    found = [False] * len(p_values)
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        if p_values[at] > error / (len(p_values) - rank):
            break
        found[at] = True
    return found
