"""The demo's inputs: handwritten digits, and how they change on their way to the model.

scikit-learn bundles 1,797 digits of 8 × 8 pixels. Half of them train the model; the others are what production sees,
each time a little different (shifted, turned and noised by chance), so that no two inputs are alike. Production draws
from one half of them while version 1 answers and from the other while version 2 does: version 2 never meets a digit
that it was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

TRAINING, PRODUCTION = 900, 450
SIDE = 8
CLASSES = tuple(str(digit) for digit in range(10))
FREQUENT = (1, 3, 8, 9)
"""The digits that come twice as often once the stream has drifted."""

Pictures = NDArray[np.float32]
"""One picture per row, 8 × 8, each pixel between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Digits:
    """Pictures with the digit that each shows."""

    pictures: Pictures
    truth: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, which: NDArray[np.int64]) -> Digits:
        return Digits(self.pictures[which], self.truth[which])

    def joined(self, other: Digits) -> Digits:
        return Digits(np.concatenate([self.pictures, other.pictures]), np.concatenate([self.truth, other.truth]))

    @property
    def rows(self) -> Pictures:
        """As the model takes them: 64 numbers per picture."""
        return self.pictures.reshape(len(self), SIDE * SIDE)


@dataclass(frozen=True)
class Handling:
    """How pictures differ from those in the training data: by chance, around a mean."""

    angle: float = 0.0
    """Mean angle in degrees, clockwise."""
    spread: float = 2.0
    """Standard deviation of the angle, in degrees."""
    shift: float = 0.2
    """Standard deviation of the shift along each axis, in pixels."""
    noise: float = 0.04
    """Standard deviation of the noise on each pixel."""


USUAL = Handling()
AUGMENTATION = Handling(spread=1.0, shift=0.3, noise=0.05)
WIDER = Handling(spread=8.0, shift=0.3, noise=0.05)
"""For inputs of production: the gallery of failures shows that pictures turn."""


def drifted(strength: float) -> Handling:
    """The handling at a drift between 0 (none) and 1: pictures turn by 15 degrees, the noise doubles."""
    return Handling(angle=15 * strength, noise=0.04 + 0.04 * strength)


def mix(truth: NDArray[np.int64], strength: float) -> NDArray[np.float64]:
    """How probable each digit is as the next input."""
    weight = np.where(np.isin(truth, FREQUENT), 1 + strength, 1.0)
    return np.asarray(weight / weight.sum())


def load(seed: int) -> tuple[Digits, Digits, Digits]:
    """The training data, and what production sees before and after the retraining."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    all_digits = Digits((bundle.images / 16).astype(np.float32), bundle.target.astype(np.int64))
    order = np.random.default_rng([seed, 1]).permutation(len(all_digits))
    ends = (0, TRAINING, TRAINING + PRODUCTION, len(order))
    training, before, after = (all_digits.take(order[start:end]) for start, end in pairwise(ends))
    return training, before, after


def handled(pictures: Pictures, handling: Handling, rng: np.random.Generator) -> Pictures:
    """Each picture turned, shifted and noised; pixels between the old ones are interpolated bilinearly."""
    count = len(pictures)
    turn = np.deg2rad(rng.normal(handling.angle, handling.spread, count))[:, None, None]
    right, down = rng.normal(0.0, handling.shift, (2, count, 1, 1))
    y, x = np.mgrid[0:SIDE, 0:SIDE] - (SIDE - 1) / 2
    margin = 3
    padded = np.pad(pictures, ((0, 0), (margin, margin), (margin, margin)))
    centre, last = margin + (SIDE - 1) / 2, SIDE + 2 * margin - 1.001
    from_x = np.clip(np.cos(turn) * x + np.sin(turn) * y - right + centre, 0, last)
    from_y = np.clip(-np.sin(turn) * x + np.cos(turn) * y - down + centre, 0, last)
    moved = _interpolated(padded, from_x, from_y)
    noisy = moved + rng.normal(0.0, handling.noise, moved.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


def _interpolated(pictures: Pictures, from_x: NDArray[np.float64], from_y: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y = from_x.astype(np.int64), from_y.astype(np.int64)
    right, down = from_x - x, from_y - y
    at = np.arange(len(pictures))[:, None, None]
    above = pictures[at, y, x] * (1 - right) + pictures[at, y, x + 1] * right
    below = pictures[at, y + 1, x] * (1 - right) + pictures[at, y + 1, x + 1] * right
    return np.asarray(above * (1 - down) + below * down)
