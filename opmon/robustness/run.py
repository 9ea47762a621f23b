"""Runs tests: perturbs, asks the model, counts, and stops each test when its share is known well enough.

All tests draw from the same inputs, with the same random numbers for the same input (common random numbers), block
after block, each test in its own order of blocks (:func:`opmon.robustness.measured.block_orders`). A block is perturbed
along a tree, so that what several tests begin with is done once; while the model answers one batch, the next is
perturbed in another thread. After every block the tests whose confidence sequence is narrow enough are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.robustness._anchors import Anchors
from opmon.robustness.evaluation import Evaluation, Judged, Model, judged, own_answers
from opmon.robustness.measured import Measured, Plan, Visit, block_orders, nothing_yet, with_visits
from opmon.robustness.space import Step, Tests
from opmon.types import Array


class Progress(Protocol):
    """Hears how many inferences are done, and how many there are at the most."""

    def __call__(self, what: str, done: int, total: int | None) -> None: ...


class Codec(Protocol):
    """Converts the model's inputs to what perturbations work on, and back."""

    def encode(self, inputs: Array) -> Array: ...

    def decode(self, inputs: Array) -> Array: ...


Look = Callable[[Tests, Sequence[Visit]], Iterator[tuple[Visit, Judged]]]
"""A function that gives the outcomes of tests for every visit, in parts of visits, one row after the other."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The subject of tests: a model, its inputs in the order of :meth:`Evaluation.shuffled`, and perturbations."""

    model: Model
    evaluation: Evaluation
    perturbations: tuple[Perturbation, ...]
    codec: Codec
    truth: Array
    plan: Plan

    @classmethod
    def of(
        cls, model: Model, evaluation: Evaluation, perturbations: Sequence[Perturbation], codec: Codec, plan: Plan
    ) -> Subject:
        """The subject with its inputs shuffled, and the truth or the model's own unperturbed answers beside them."""
        shuffled, _ = evaluation.shuffled(plan.seed)
        truth = shuffled.truth
        if truth is None:
            parts = range(0, len(shuffled), plan.batch)
            answers = np.concatenate([np.asarray(model(shuffled.inputs[at : at + plan.batch])) for at in parts])
            truth = own_answers(answers, shuffled)
        fitted = [perturbation.fitted(evaluation.inputs) for perturbation in perturbations]
        return cls(model, shuffled, tuple(fitted), codec, truth, plan)

    def look(self, tests: Tests, visits: Sequence[Visit]) -> Iterator[tuple[Visit, Judged]]:
        """One batch perturbs in another thread while the model answers the one before."""
        batches = self.batches(tests, visits)
        with ThreadPoolExecutor(max_workers=1) as pool:
            coming = pool.submit(next, batches, None)
            while (batch := coming.result()) is not None:
                coming = pool.submit(next, batches, None)
                pieces, inputs = batch
                truth = np.concatenate([self.truth[start:stop] for _, start, stop in pieces])
                outcomes, at = judged(self.model(inputs), truth, self.evaluation), 0
                for row, start, stop in pieces:
                    end = at + stop - start
                    margin = None if outcomes.margin is None else outcomes.margin[at:end]
                    yield ([row], start, stop), Judged(outcomes.right[at:end], margin)
                    at = end

    def perturbed(self, steps: Sequence[Step], count: int) -> Array:
        """The first inputs under one test, as the model takes them: for galleries and measures of quality."""
        if not steps:
            return self.evaluation.inputs[:count]
        parts = []
        for start in range(0, count, self.plan.block):
            stop = min(start + self.plan.block, len(self.evaluation))
            encoded = self.codec.encode(self.evaluation.inputs[start:stop])
            for step in steps:
                encoded = self._apply(step, encoded, start)
            parts.append(self.codec.decode(encoded))
        return np.concatenate(parts)[:count]

    def batches(self, tests: Tests, visits: Sequence[Visit]) -> Iterator[tuple[list[tuple[int, int, int]], Array]]:
        """(pieces, their perturbed inputs one after the other) in batches that suit the model; a piece is a test and
        the inputs it looks at, from one number up to another."""
        pieces: list[tuple[int, int, int]] = []
        parts: list[Array] = []
        count = 0
        for rows, start, stop in visits:
            tree = _Tree.of([(tests.steps(row), row) for row in rows])
            for row, part in self._grown(tree, self.evaluation.inputs[start:stop], start):
                pieces.append((row, start, stop))
                parts.append(part)
                count += stop - start
                if count >= self.plan.batch:
                    yield pieces, np.concatenate(parts)
                    pieces, parts, count = [], [], 0
        if pieces:
            yield pieces, np.concatenate(parts)

    def _grown(self, tree: _Tree, inputs: Array, start: int) -> Iterator[tuple[int, Array]]:
        """Every test of the tree with its perturbed inputs; each branch is perturbed once."""
        if tree.test is not None:
            yield tree.test, inputs
        yield from self._branches(tree, self.codec.encode(inputs), start)

    def _branches(self, tree: _Tree, encoded: Array, start: int) -> Iterator[tuple[int, Array]]:
        for step, branch in tree.branches.items():
            changed = self._apply(step, encoded, start)
            if branch.test is not None:
                yield branch.test, self.codec.decode(changed)
            yield from self._branches(branch, changed, start)

    def _apply(self, step: Step, encoded: Array, start: int) -> Array:
        number, severity = step
        rng = np.random.default_rng([self.plan.seed, number, start])  # the same for all severities
        own = encoded.copy()  # a function may change it in place, and other tests begin with it too
        try:
            changed = self.perturbations[number].apply(own, severity, rng)
        except InputError:
            raise
        except Exception as exc:  # a perturbation may be anybody's
            raise InputError(
                f"perturbation number {number + 1} fails at severity {severity}: {type(exc).__name__}: {exc}"
            ) from exc
        if np.shape(changed) != np.shape(encoded):
            raise InputError(
                f"perturbation number {number + 1} made {np.shape(changed)} of {np.shape(encoded)}: it must keep the "
                f"shape of the inputs"
            )
        return changed


def measure(
    look: Look,
    tests: Tests,
    inputs: int,
    plan: Plan,
    *,
    weights: NDArray[np.float64] | None = None,
    anchors: Anchors | None = None,
    progress: Callable[[int, int], None] | None = None,
    resume: Measured | None = None,
    save: Callable[[Measured], None] | None = None,
) -> Measured:
    """Run ``tests`` on ``inputs`` inputs; without ``anchors`` from their own outcomes alone.

    ``progress`` hears the inferences done and the most there can be; ``resume`` goes on from what ``save`` was last
    given, with the same result as without a break.
    """
    orders = block_orders(tests, inputs, plan)
    state = nothing_yet(tests, inputs, weights)
    if resume is not None and _goes_on(resume, orders, plan):
        state = resume
    while not state.finished.all():
        visited = -(-state.seen // plan.block)
        step = int(visited[~state.finished].min())
        active = np.flatnonzero(~state.finished & (visited == step))
        at = orders[active, step]
        visits = [
            (active[at == block].tolist(), start, min(start + plan.block, inputs))
            for block, start in ((block, block * plan.block) for block in np.unique(at).tolist())
        ]
        state = with_visits(state, look(state.tests, visits), active, plan, anchors)
        if progress is not None:
            progress(state.inferences, state.inferences + int((inputs - state.seen[~state.finished]).sum()))
        if save is not None:
            save(state)
    return state


def _goes_on(state: Measured, orders: NDArray[np.int64], plan: Plan) -> bool:
    """Whether the tests looked at the blocks that they would have looked at by now: another version may take others."""
    inputs = state.right.shape[1]
    visited = -(-state.seen // plan.block)
    rank = np.argsort(orders, axis=1)[:, np.arange(inputs) // plan.block]
    return bool(((state.right >= 0) == (rank < visited[:, None])).all())


@dataclass
class _Tree:
    """Chains of steps that begin alike, as a tree."""

    test: int | None = None
    """The row of the test that ends here."""
    branches: dict[Step, _Tree] = field(default_factory=dict)

    @classmethod
    def of(cls, chains: Sequence[tuple[tuple[Step, ...], int]]) -> _Tree:
        """The tree of the chains of tests in these rows."""
        root = cls()
        for steps, row in chains:
            node = root
            for step in steps:
                node = node.branches.setdefault(step, cls())
            node.test = row
        return root
