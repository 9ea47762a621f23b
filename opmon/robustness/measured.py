"""The measurements of tests, which grow with every block of inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness._anchors import Anchors, boundary
from opmon.robustness._sequences import share_bounds
from opmon.robustness.evaluation import Judged
from opmon.robustness.space import Tests
from opmon.types import Floats

Visit = tuple[list[int], int, int]
"""Tests, as rows, that look at the inputs from the second number up to the third."""
_COMMON_BLOCKS, _COMMON_SHARE = 1, 0.05
_PER_TEST = ("right", "seen", "share", "error", "low", "high", "finished")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan for running tests. ``half_width`` None: every test looks at all inputs."""

    half_width: float | None = 0.03
    level: float = 0.95
    block: int = 100
    batch: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        if self.half_width is not None and not 0 < self.half_width < 0.5:
            raise InputError(f"half_width lies between 0 and 0.5, or is None for all inputs; got {self.half_width}")
        if not 0 < self.level < 1:
            raise InputError(f"level must lie strictly between 0 and 1; got {self.level}")
        if self.block < 1 or self.batch < 1:
            raise InputError(f"block and batch count inputs, at least 1; got {self.block} and {self.batch}")


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of tests. ``right[t, i]`` is 1 or 0 for the ``seen[t]`` inputs that test t looked at, else −1;
    ``margin`` beside it.

    ``share`` is r_σ as estimated for all inputs, ``error`` its standard error (0 where all were seen), ``low`` and
    ``high`` bounds that hold whenever the test was stopped.
    """

    tests: Tests
    right: NDArray[np.int8]
    margin: NDArray[np.float32] | None
    seen: NDArray[np.int64]
    share: Floats
    error: Floats
    low: Floats
    high: Floats
    finished: NDArray[np.bool_]
    weights: Floats | None = None

    @property
    def inferences(self) -> int:
        return int(self.seen.sum())

    @property
    def half_width(self) -> Floats:
        return (self.high - self.low) / 2

    def take(self, which: slice) -> Measured:
        """The measurements of some of the tests."""
        margin = None if self.margin is None else self.margin[which]
        arrays = {name: getattr(self, name)[which] for name in _PER_TEST}
        return Measured(tests=self.tests.take(which), margin=margin, weights=self.weights, **arrays)

    def with_shares(self, share: Floats, error: Floats) -> Measured:
        """The measurements with better shares: bounds move with them, and are not wider than they were."""
        half = np.minimum(self.half_width, _bounding(self.seen, self.right.shape[1], error))
        low, high = np.maximum(share - half, 0), np.minimum(share + half, 1)
        return replace(self, share=np.clip(share, 0, 1), error=error, low=low, high=high)

    def __add__(self, other: Measured) -> Measured:
        margin = None
        if self.margin is not None and other.margin is not None:
            margin = np.concatenate([self.margin, other.margin])
        arrays = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _PER_TEST}
        return Measured(tests=self.tests + other.tests, margin=margin, weights=self.weights, **arrays)


def _bounding(seen: NDArray[np.int64], inputs: int, error: Floats) -> Floats:
    return np.asarray(error * np.array([boundary(int(n), inputs, 0.95) for n in seen]))


def nothing_yet(tests: Tests, inputs: int, weights: Floats | None = None) -> Measured:
    """The state before the first block."""
    n = len(tests)
    return Measured(
        tests=tests,
        right=np.full((n, inputs), -1, np.int8),
        margin=None,
        seen=np.zeros(n, np.int64),
        share=np.full(n, 0.5),
        error=np.full(n, 0.5),
        low=np.zeros(n),
        high=np.ones(n),
        finished=np.zeros(n, bool),
        weights=weights,
    )


def with_visits(
    state: Measured,
    outcomes: Iterable[tuple[Visit, Judged]],
    active: NDArray[np.int64],
    plan: Plan,
    anchors: Anchors | None,
) -> Measured:
    """The state after the active tests have looked at one more block of inputs each."""
    inputs = state.right.shape[1]
    right, margin = state.right.copy(), None if state.margin is None else state.margin.copy()
    for (rows, start, stop), judged in outcomes:
        right[rows, start:stop] = judged.right.reshape(len(rows), -1)
        if judged.margin is not None:
            if margin is None:
                margin = np.full(right.shape, np.nan, np.float32)
            margin[rows, start:stop] = judged.margin.reshape(len(rows), -1)
    seen, finished = state.seen.copy(), state.finished.copy()
    share, error, low, high = (a.copy() for a in (state.share, state.error, state.low, state.high))
    known = right[active]
    seen[active] = n = (known >= 0).sum(axis=1)
    helped = anchors or Anchors.of(np.empty((0, inputs)), None, state.weights, inputs)
    share[active], error[active], half = helped.estimate(known, plan.level)
    if anchors is None and state.weights is None:
        low[active], high[active] = share_bounds((known > 0).sum(axis=1), n, inputs, plan.level)
    else:
        low[active], high[active] = np.maximum(share[active] - half, 0), np.minimum(share[active] + half, 1)
    finished[active] = n == inputs
    if plan.half_width is not None:
        finished |= (high - low) / 2 <= plan.half_width
    return replace(
        state, right=right, margin=margin, seen=seen, share=share, error=error, low=low, high=high, finished=finished
    )


def block_orders(tests: Tests, inputs: int, plan: Plan) -> NDArray[np.int64]:
    """The order in which each test looks at the blocks of inputs, one row per test.

    A few blocks are the first of all tests: what is made of several tests input by input is known there. The others
    come in a random order for each set of perturbations, and the severities of the first of them begin at places evenly
    spread over it. So every test looks at a random part of the inputs, tests that begin alike look at the same (and
    what they begin with is perturbed once), and neighbouring severities look at different ones: each input is seen
    under tests all over the space, and what it does under the others lies between
    (:mod:`opmon.robustness._completed`).
    """
    blocks, top = -(-inputs // plan.block), int(tests.severities.max(initial=1))
    orders = np.tile(np.arange(blocks), (len(tests), 1))
    common = max(_COMMON_BLOCKS, round(_COMMON_SHARE * blocks))
    if plan.half_width is None or blocks <= common:
        return orders
    for row, chain in enumerate(tests.chains()):
        if chain:
            numbers = [number for number, _ in chain]
            order = np.random.default_rng([plan.seed, 0xB10C, *numbers]).permutation(np.arange(common, blocks))
            place = chain[0][1] if len(chain) <= 2 else sum((i + 1) * s for i, (_, s) in enumerate(chain))
            orders[row, common:] = np.roll(order, -(place * len(order) // top))
    return orders
