"""The run of tests, in order: anchors, all pairs, then what tells most for what it costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness._anchors import Anchors
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.run import Look, Progress, measure
from opmon.robustness.space import Space, Step, Tests
from opmon.robustness.surrogates.interactions import Surrogate, interactions
from opmon.robustness.surrogates.known import Known

_COARSE, _FINER = 4 / 3, (0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_MOST_BEYOND = 240


@dataclass(frozen=True, slots=True)
class Budget:
    """The effort spent beyond pairs.

    ``beyond_pairs`` tests (None: :func:`suggested` of them). Where ``inferences`` says how many there may be in all,
    what is left of it goes into all tests on more inputs.
    """

    beyond_pairs: int | None = None
    inferences: int | None = None

    def __post_init__(self) -> None:
        for name in ("beyond_pairs", "inferences"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} counts and cannot be negative; got {value}")


def suggested(space: Space) -> int:
    """The number of tests beyond pairs that tell enough of the others: 12 and 12 more for each three perturbations, at
    most 40 % of what there is and 240."""
    triples = math.comb(len(space.names), 3) * (6 if space.ordered else 1)
    there = sum(space.count(order) for order in range(3, space.highest + 1))
    return min(12 * (1 + triples), math.ceil(0.4 * there), _MOST_BEYOND)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state that a run which was broken off goes on from: tests done, tests under way, and their precision."""

    done: Measured | None
    under_way: Measured | None
    half_width: float | None = None


@dataclass(frozen=True, eq=False)
class Running:
    """The tests of one tomography under way."""

    look: Look
    space: Space
    inputs: int
    weights: NDArray[np.float64] | None
    plan: Plan
    budget: Budget
    level: float = 0.9
    progress: Progress | None = None
    save: Callable[[Checkpoint], None] | None = None

    def run(self, resume: Checkpoint | None = None) -> tuple[Measured, Surrogate | None, Known]:
        """Measure all tests, and return them with the surrogate of those beyond pairs (None where there are none)."""
        start = resume or Checkpoint(None, None)
        first = anchor_tests(self.space)
        done = self._stage(first, replace(self.plan, half_width=None), start, None)
        count = len(first)
        margin = None if done.margin is None else done.margin[:count]
        anchors = Anchors.of(done.right[:count], margin, self.weights, self.inputs)
        plan = self.plan
        if self.budget.inferences is not None and plan.half_width is not None:
            plan = replace(plan, half_width=_COARSE * plan.half_width)
        if start.half_width is not None:
            plan = replace(plan, half_width=start.half_width)
        done = self._stage(self.space.tests(0, 2), plan, Checkpoint(done, start.under_way), anchors)
        return self._beyond(done, anchors, plan, start.under_way)

    def _beyond(
        self, done: Measured, anchors: Anchors, plan: Plan, under_way: Measured | None
    ) -> tuple[Measured, Surrogate | None, Known]:
        beyond, known = self.space.tests(3), Known.of(done, self.space.levels)
        if not len(beyond):
            return known.measured, None, known
        while True:
            surrogate = interactions(known, beyond, self.space.levels, self.level)
            chosen = surrogate.next_tests(self._affordable(done, len(surrogate.rows)), 0.3 * (plan.half_width or 0.01))
            finer = None if chosen else self._finer(done, plan)
            if finer is None and not chosen:
                chosen = surrogate.next_tests(self._left_over(done), 0.3 * (plan.half_width or 0.01))
            if finer is not None:
                plan = finer
                done = self._refined(done, anchors, plan)
            elif chosen:
                done = self._stage(beyond.take(chosen), plan, Checkpoint(done, under_way), anchors)
            else:
                return known.measured, surrogate, known
            known = Known.of(done, self.space.levels, known)

    def _affordable(self, done: Measured, beyond: int) -> int:
        """The number of tests to run before the surrogate is asked again: few at first, more as it knows more."""
        wanted = suggested(self.space) if self.budget.beyond_pairs is None else self.budget.beyond_pairs
        if self.budget.inferences is not None:
            if self.budget.beyond_pairs is None:
                wanted *= 2
            wanted = min(wanted, beyond + self._left_over(done))
        return max(min(8 if not beyond else max(24, beyond), wanted - beyond), 0)

    def _left_over(self, done: Measured) -> int:
        """For how many more tests there are inferences left."""
        usual = float(np.quantile(done.seen, 0.75)) + self.plan.block / 2
        return max(int(((self.budget.inferences or 0) - done.inferences) / usual), 0)

    def _finer(self, done: Measured, plan: Plan) -> Plan | None:
        """The plan for all tests on more inputs, on as many as are affordable; None where none are."""
        if self.budget.inferences is None or plan.half_width is None:
            return None
        seen = np.maximum(done.seen, 1)
        for factor in _FINER:
            wanted = 1 / (1 / self.inputs + np.maximum(1 / seen - 1 / self.inputs, 0) * factor**2)
            cost = float(np.maximum(np.ceil(wanted / self.plan.block) * self.plan.block - done.seen, 0).sum())
            if 0 < cost <= self.budget.inferences - done.inferences:
                return replace(plan, half_width=factor * plan.half_width)
        return None

    def _refined(self, done: Measured, anchors: Anchors, plan: Plan) -> Measured:
        """Run all tests but the anchors until they are as precise as the plan says."""
        count = len(anchor_tests(self.space))
        rest = done.take(slice(count, None))
        open_ = replace(rest, finished=(rest.seen == self.inputs) | (rest.half_width <= (plan.half_width or 0)))
        refined = self._measured(open_.tests, plan, anchors, open_, done.take(slice(0, count)), None)
        if self.save is not None:
            self.save(Checkpoint(refined, None, plan.half_width))
        return refined

    def _stage(self, tests: Tests, plan: Plan, start: Checkpoint, anchors: Anchors | None) -> Measured:
        """``start.done`` with ``tests`` added; tests already done are not run again."""
        have = set() if start.done is None else set(start.done.tests.chains())
        open_ = tests.take(np.array([chain not in have for chain in tests.chains()], bool))
        if not len(open_):
            assert start.done is not None
            return start.done
        under_way = start.under_way
        if under_way is not None and under_way.tests.chains() != open_.chains():
            under_way = None
        return self._measured(open_, plan, anchors, under_way, start.done, self.save)

    def _measured(
        self,
        tests: Tests,
        plan: Plan,
        anchors: Anchors | None,
        resume: Measured | None,
        done: Measured | None,
        save: Callable[[Checkpoint], None] | None,
    ) -> Measured:
        before = 0 if done is None else done.inferences
        progress, half = self.progress, None if done is None else plan.half_width
        measured = measure(
            self.look,
            tests,
            self.inputs,
            plan,
            weights=self.weights,
            anchors=anchors,
            resume=resume,
            save=None if save is None else lambda state: save(Checkpoint(done, state, half)),
            progress=None if progress is None else lambda now, most: progress("tests", before + now, before + most),
        )
        return measured if done is None else done + measured


def anchor_tests(space: Space) -> Tests:
    """The tests that look at all inputs: none, each perturbation at its worst, each pair one short of it."""
    k, top = len(space.names), space.levels
    middle = max(1, top - 1)
    arrange = itertools.permutations if space.ordered else itertools.combinations
    pairs: list[tuple[Step, ...]] = (
        [] if space.highest < 2 else [((a, middle), (b, middle)) for a, b in arrange(range(k), 2)]
    )
    return space.of([(), *[((j, top),) for j in range(k)], *pairs])
