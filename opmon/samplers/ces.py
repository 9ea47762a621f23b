"""CES: the sample whose hidden-layer activations look most like those of the frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Sampler
from opmon.errors import InputError
from opmon.samplers._checks import CHUNK, Prepared, checked_count, chunks, is_whole, take_all
from opmon.samplers.sections import MOST_SECTIONS, are_sections, sections_of
from opmon.types import Array, Draw, Frame

SMOOTHING = 0.5
"""Added to every section's count: an empty section of the sample costs much, but not without bound."""


@dataclass(frozen=True)
class CrossEntropy(Sampler):
    """Grow a sample by the group of inputs that brings its activations closest to those of the frame.

    Li et al., ESEC/FSE 2019, algorithm 1: ``p`` (``first``) random inputs, then the best of ``ℓ`` (``groups``) random
    groups of ``q`` (``group_size``) again and again. The last hidden layer's neurons are cut into ``K`` (``sections``)
    equal sections; a sample ``T`` is scored by the mean over neurons of ``−Σ_z P_S(z) log P_T(z)``. Frames of fewer
    than ``small`` inputs start with 5 and use ``D_KL(P_T ‖ P_S)``. All groups are scored in one vectorised step on
    counts that are carried along: the bins of an activation are computed once.

    The estimate from it is a plain mean and **not unbiased**: the choice of the groups favours typical inputs, and
    the bias grows with the budget on hard tasks.
    """

    first: int = 30
    """How many inputs the first group has."""
    group_size: int = 5
    """How many inputs each further group has."""
    groups: int = 300
    """How many groups are tried at each step; the one whose neurons are most like all inputs' is taken."""
    sections: int = 20
    """Into how many levels the activations of each neuron are divided."""
    small: int = 500
    """Frames of fewer inputs start with 5."""

    def __post_init__(self) -> None:
        for name in ("first", "group_size", "groups"):
            checked_count(getattr(self, name), name, 1_000_000)
        if checked_count(self.sections, "sections", MOST_SECTIONS) < 2:
            raise InputError(f"sections must lie in 2..{MOST_SECTIONS}; got {self.sections!r}")

    @property
    def activation_levels(self) -> int:
        """The number of sections in which it wants the activations of a hidden layer."""
        return self.sections

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return self.prepare(frame, budget)(rng)

    def prepare(self, frame: Frame, budget: int) -> Prepared:
        if frame.activations is None:
            raise InputError("CES needs the frame's activations (one row per input); name another sampler, such as srs")
        if is_whole(frame, budget):
            return lambda rng: take_all(frame, rng)
        bins = section_indices(frame.activations, self.sections)
        search = _Search(bins, _counts(bins, self.sections) / frame.size, small=frame.size < self.small)

        def draw(rng: np.random.Generator) -> Draw:
            first = min(5 if search.small else self.first, budget)
            return Draw("ces", frame.size, search.run(first, budget, self.groups, self.group_size, rng))

        return draw


def section_indices(activations: Array, sections: int) -> NDArray[np.uint8]:
    """The number of the part that each activation lies in, of ``sections`` equal parts of its neuron's range.

    The frame of a monitor holds these numbers, coded while the inputs were scored: they are taken as they are.
    """
    if activations.ndim != 2 or not activations.shape[1]:
        raise InputError(f"activations must have one row per input and a column per neuron; got {activations.shape}")
    if are_sections(activations, sections):
        return activations
    low, high = activations.min(axis=0), activations.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError("activations must be finite; got NaN or infinity. Mend what computes them")
    return sections_of(activations, low, high, sections)


def _counts(bins: NDArray[np.uint8], sections: int) -> NDArray[np.int64]:
    """The number of inputs of the frame in each section: one row per neuron."""
    neurons = bins.shape[1]
    offsets = (np.arange(neurons) * sections).astype(np.int32)
    counts = np.zeros(neurons * sections, dtype=np.int64)
    for part in chunks(len(bins), max(1, 32 * CHUNK // neurons)):
        counts += np.bincount((bins[part] + offsets).ravel(), minlength=len(counts))
    return counts.reshape(neurons, sections)


@dataclass(frozen=True, eq=False)
class _Search:
    bins: NDArray[np.uint8]
    target: NDArray[np.float64]
    """P_S: one row per neuron, one column per section."""
    small: bool

    def run(self, first: int, budget: int, groups: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        left = rng.permutation(len(self.bins))
        neurons, sections = self.target.shape
        offsets = (np.arange(neurons) * sections).astype(np.int32)
        counts = np.bincount((self.bins[left[:first]] + offsets).ravel(), minlength=neurons * sections)
        taken = first
        while taken < budget:
            q = min(size, budget - taken)
            picks = taken + _distinct(len(left) - taken, groups, q, rng)
            bins = self.bins[left[picks]]
            gain = self._gains(bins, counts, offsets, q)
            best = picks[int(np.argmax(gain))]
            counts += np.bincount((self.bins[left[best]] + offsets).ravel(), minlength=len(counts))
            for place in np.sort(best):
                left[[taken, place]] = left[[place, taken]]
                taken += 1
        return left[:budget].astype(np.int64)

    def _gains(
        self, bins: NDArray[np.uint8], counts: NDArray[np.int64], offsets: NDArray[np.int32], q: int
    ) -> NDArray[np.float64]:
        """The improvement of the objective by each group of ``q``; what all groups share is left out."""
        table = np.stack([self._step(counts + already) for already in range(q)]).astype(np.float32).ravel()
        gain = np.zeros(len(bins))
        for k in range(q):
            already = np.zeros(bins[:, k].shape, dtype=np.int32)
            for earlier in range(k):
                already += bins[:, earlier] == bins[:, k]
            already *= len(counts)
            already += bins[:, k]
            already += offsets
            gain += table[already].sum(axis=1)
        return gain

    def _step(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The gain of one more input in each section that now holds ``counts``."""
        target = self.target.ravel()
        if not self.small:
            return np.asarray(target * np.log1p(1 / (counts + SMOOTHING)))
        safe = np.maximum(target, 1e-12)
        after = (counts + 1) * np.log((counts + 1) / safe)
        before = np.where(counts > 0, counts * np.log(np.maximum(counts, 1) / safe), 0.0)
        return np.asarray(before - after)


def _distinct(stop: int, rows: int, columns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of distinct integers below ``stop``."""
    if columns * 4 > stop:
        return np.stack([rng.permutation(stop)[:columns] for _ in range(rows)])
    numbers = rng.integers(0, stop, (rows, columns))
    while True:
        ordered = np.sort(numbers, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(twice):
            return numbers
        numbers[twice] = rng.integers(0, stop, (len(twice), columns))
