"""GBS: gradient-based stratified sampling, in waves."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.samplers._checks import ByVariable, Prepared, checked_budget, checked_count
from opmon.samplers._strata import Strata
from opmon.types import Draw, Frame, Numbers, Sample


@dataclass(frozen=True)
class GradientBased(ByVariable):
    """Give the next draw to the stratum that the labels so far say is worth it most.

    The next draw goes to the stratum with the largest ``(N_h/N)² v_h / n_h²``, ties at random, where ``v_h`` is
    ``θ̂_h (1 − θ̂_h)`` (classification) or the variance of the squared errors in the stratum, from the labels that have
    come in (DeepSample, section 3.4.5). While few have come ``v_h`` is drawn towards the pooled one, as two more
    labels would, so that a stratum without a failure yet is not given up. Strata are those of SSRS.

    Drawing one by one by what was seen biases the stratified mean: a stratum that looks free of failures by bad luck
    is not looked at again (measured: half of the failure rate of a 99 % accurate model is lost). So the labels are
    looked at between ``waves`` equal waves, ``n_h`` counts the draws of the wave, and each wave takes at least one
    input from every stratum: then each wave estimates without bias whatever came before. There are fewer waves where
    the budget does not give two draws to each stratum in each wave, and strata of at least two draws in all.

    Columns ``stratum`` and ``wave``; constants ``stratum_size``, ``waves`` (how many) and ``candidates``, the order in
    which each stratum's inputs would be drawn (padded with −1).
    """

    strata: int = 10
    """Into how many strata the variable is cut."""
    waves: int = 5
    """In how many equal waves it draws; the labels are looked at between them."""

    def __post_init__(self) -> None:
        checked_count(self.strata, "strata", 200)
        checked_count(self.waves, "waves", 1000)

    def prepared(self, values: Numbers, budget: int) -> Prepared:
        strata = Strata.by_kmeans(values, max(1, min(self.strata, budget // 2)))
        waves = max(1, min(self.waves, budget // (2 * strata.count)))

        def draw(rng: np.random.Generator) -> Draw:
            candidates = np.full((strata.count, budget), -1, dtype=np.int64)
            for h, size in enumerate(strata.sizes):
                some = min(int(size), budget)
                candidates[h, :some] = strata.draw(h, some, rng)
            empty = Draw(
                "gbs",
                len(values),
                np.empty(0, dtype=np.int64),
                columns={"stratum": np.empty(0, dtype=np.int64), "wave": np.empty(0, dtype=np.int64)},
                constants={"stratum_size": strata.sizes, "waves": np.array(waves), "candidates": candidates},
            )
            return _go_on(empty, np.ones(strata.count), -(-budget // waves), rng)

        return draw

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged once ``budget`` is spent."""
        draw = sample.draw
        left = min(checked_budget(budget), frame.size) - len(draw)
        whole = draw.design == "srs" and len(draw) == frame.size  # what draw() makes of a frame within the budget
        if draw.frame_size != frame.size or not (draw.design == "gbs" or whole):
            raise InputError(
                f"the draw to go on with must be of design 'gbs' from this frame of {frame.size} inputs; "
                f"got {draw.design!r} from {draw.frame_size}. Begin with draw()."
            )
        if left <= 0:
            return draw
        prepared = draw.constants["candidates"].shape[1]
        if budget > prepared:
            raise InputError(f"the draw was begun for a budget of {prepared}; got {budget}. Begin anew with draw().")
        done = int(draw.columns["wave"][-1]) + 1
        to_come = max(1, int(draw.constants["waves"]) - done)
        return _go_on(draw, _variances(sample, len(draw.constants["stratum_size"])), -(-left // to_come), rng)

    def at_once(self) -> GradientBased:
        return replace(self, waves=1)


def _go_on(draw: Draw, variances: NDArray[np.float64], wave: int, rng: np.random.Generator) -> Draw:
    """``draw`` followed by ``wave`` more, each to the stratum of the largest gradient."""
    sizes, candidates = draw.constants["stratum_size"], draw.constants["candidates"]
    before = np.bincount(draw.columns["stratum"], minlength=len(sizes))
    room = np.minimum(sizes, candidates.shape[1]) - before
    worth = (sizes / draw.frame_size) ** 2 * variances * (1 + 1e-9 * rng.random(len(sizes)))
    counts = _steepest(worth, room, wave)
    strata = np.repeat(np.arange(len(sizes)), counts)
    positions = np.concatenate([candidates[h, b : b + c] for h, (b, c) in enumerate(zip(before, counts, strict=True))])
    mixed = rng.permutation(len(positions))
    number = int(draw.columns["wave"][-1]) + 1 if len(draw) else 0
    return Draw(
        "gbs",
        draw.frame_size,
        np.concatenate((draw.positions, positions[mixed])),
        columns={
            "stratum": np.concatenate((draw.columns["stratum"], strata[mixed])),
            "wave": np.concatenate((draw.columns["wave"], np.full(len(positions), number))),
        },
        constants=draw.constants,
    )


def _steepest(worth: NDArray[np.float64], room: NDArray[np.int64], wave: int) -> NDArray[np.int64]:
    """The number of ``wave`` draws for each stratum: one, then always where ``worth / n_h²`` is largest."""
    counts = np.zeros(len(worth), dtype=np.int64)
    counts[np.argsort(-worth)[:wave]] = 1
    counts = np.minimum(counts, room)
    heap = [(-float(worth[h]), h) for h in range(len(worth)) if 0 < counts[h] < room[h]]
    heapq.heapify(heap)
    for _ in range(wave - int(counts.sum())):
        if not heap:
            break
        _, h = heap[0]
        counts[h] += 1
        if counts[h] < room[h]:
            heapq.heapreplace(heap, (-float(worth[h]) / float(counts[h]) ** 2, h))
        else:
            heapq.heappop(heap)
    return counts


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
    variances = np.maximum(square - mean**2, 0.0)
    return variances if variances.max() > 0 else np.ones(count)
