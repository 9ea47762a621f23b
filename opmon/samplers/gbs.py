"""GBS: gradient-based stratified sampling, in waves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.samplers.core import Prepared, auxiliary, is_whole, take_all
from opmon.samplers.strata_core import Strata
from opmon.types import Draw, Frame, Sample


@dataclass(frozen=True)
class GradientBased:
    """Give the next draw to the stratum that the labels so far say is worth it most.

    The next draw goes to the stratum with the largest ``(N_h/N)² v_h / n_h²``, ties at random, where ``v_h`` is
    ``θ̂_h (1 − θ̂_h)`` (classification) or the variance of the squared errors in the stratum, from the labels that have
    come in (DeepSample, section 3.4.5). While ``n_h`` is small ``v_h`` is drawn towards the pooled one, as two more
    labels would, so that a stratum without a failure yet is not given up. Strata are those of SSRS; each starts with
    one draw. The labels are looked at ``waves`` times; ``waves = budget`` is the paper's one label at a time.

    Column ``stratum``; constants ``stratum_size`` and ``candidates``, the order in which each stratum's inputs would
    be drawn (padded with −1).
    """

    variable: str = "confidence"
    strata: int = 10
    waves: int = 10

    def __post_init__(self) -> None:
        if self.strata < 1 or self.strata > 200:
            raise InputError(f"strata must lie in 1..200; got {self.strata!r}")
        if self.waves < 1:
            raise InputError(f"waves must be at least 1; got {self.waves!r}")

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return self.prepare(frame, budget)(rng)

    def prepare(self, frame: Frame, budget: int) -> Prepared:
        values = auxiliary(frame, self.variable)
        if is_whole(frame, budget):
            return lambda rng: take_all(frame, rng)
        strata = Strata.by_kmeans(values, min(self.strata, budget))

        def draw(rng: np.random.Generator) -> Draw:
            candidates = np.full((strata.count, budget), -1, dtype=np.int64)
            for h, size in enumerate(strata.sizes):
                some = min(int(size), budget)
                candidates[h, :some] = strata.draw(h, some, rng)
            empty = Draw(
                "gbs",
                frame.size,
                np.empty(0, dtype=np.int64),
                columns={"stratum": np.empty(0, dtype=np.int64)},
                constants={"stratum_size": strata.sizes, "candidates": candidates},
            )
            return self._go_on(empty, np.ones(strata.count), self._wave(budget, strata.count), rng)

        return draw

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged once ``budget`` is spent."""
        draw = sample.draw
        left = min(budget, frame.size) - len(draw)
        if left <= 0 or draw.design != "gbs":
            return draw
        variances = _variances(sample, len(draw.constants["stratum_size"]))
        return self._go_on(draw, variances, min(left, self._wave(budget, 1)), rng)

    def _wave(self, budget: int, least: int) -> int:
        return min(budget, max(least, -(-budget // self.waves)))

    def _go_on(self, draw: Draw, variances: NDArray[np.float64], wave: int, rng: np.random.Generator) -> Draw:
        sizes, candidates = draw.constants["stratum_size"], draw.constants["candidates"]
        counts = np.bincount(draw.columns["stratum"], minlength=len(sizes))
        worth = (sizes / draw.frame_size) ** 2 * variances * (1 + 1e-9 * rng.random(len(sizes)))
        room = np.minimum(sizes, candidates.shape[1])
        strata = np.empty(wave, dtype=np.int64)
        positions = np.empty(wave, dtype=np.int64)
        for k in range(wave):
            gradient = np.where(counts > 0, worth / np.maximum(counts, 1) ** 2, np.inf)
            h = int(np.argmax(np.where(counts < room, gradient, -1.0)))
            strata[k], positions[k] = h, candidates[h, counts[h]]
            counts[h] += 1
        mixed = rng.permutation(wave)
        return Draw(
            "gbs",
            draw.frame_size,
            np.concatenate((draw.positions, positions[mixed])),
            columns={"stratum": np.concatenate((draw.columns["stratum"], strata[mixed]))},
            constants=draw.constants,
        )


def _variances(sample: Sample, count: int) -> NDArray[np.float64]:
    """The variance of the outcome in each stratum, drawn towards the pooled one as two more labels would."""
    answered = sample.answered
    y, stratum = sample.outcomes[answered], sample.draw.columns["stratum"][answered]
    if not len(y):
        return np.ones(count)
    n = np.bincount(stratum, minlength=count)
    total = np.bincount(stratum, weights=y, minlength=count)
    pooled = float(y.mean())
    mean = (total + 2 * pooled) / (n + 2)
    square = (np.bincount(stratum, weights=y * y, minlength=count) + 2 * float((y * y).mean())) / (n + 2)
    found = np.maximum(square - mean**2, 0.0)
    return found if found.max() > 0 else np.ones(count)
