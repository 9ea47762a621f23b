"""Which tests are run, in what order, and how well: anchors, all pairs, then what tells most for what it costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness.anchors_core import Anchors
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.run import Look, Progress, measure
from opmon.robustness.space import Space, Tests
from opmon.robustness.surrogates.core import Known
from opmon.robustness.surrogates.interactions import Surrogate, interactions

_COARSE, _FINER = 4 / 3, 0.85
_SHARED = 4.0
"""How much heavier the variance that all tests share weighs: the mean over a query's tests does not lessen it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is spent beyond pairs.

    ``beyond_pairs`` tests at the plan's half-width; or, where ``inferences`` says how many there may be in all,
    whatever lessens the errors most: more tests beyond pairs, or all tests on more inputs. None: no limit of that kind.
    """

    beyond_pairs: int | None = 24
    inferences: int | None = None

    def __post_init__(self) -> None:
        for name in ("beyond_pairs", "inferences"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} counts and cannot be negative; got {value}")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run that was broken off goes on from: tests that are done, those under way, and how well they are run."""

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
        """Everything measured, and the surrogate of the tests beyond pairs (None where there are none)."""
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
        beyond, known = self.space.tests(3), Known(done, anchors)
        if not len(beyond):
            return done, None, known
        while True:
            surrogate = interactions(known, beyond, self.space.levels, self.level)
            count = self._affordable(done, len(surrogate.rows))
            chosen, gained = surrogate.next_tests(count, 0.3 * (plan.half_width or 0.01))
            finer = self._finer(done, plan, surrogate, gained / max(count * self._usual(done), 1))
            if finer is not None:
                plan = finer
                done = self._refined(done, anchors, plan)
            elif chosen:
                done = self._stage(beyond.take(chosen), plan, Checkpoint(done, under_way), anchors)
            else:
                return done, surrogate, known
            known = Known(done, anchors)

    def _usual(self, done: Measured) -> float:
        """About what one more test costs."""
        return max(float(np.quantile(done.seen, 0.6)), 1.0)

    def _affordable(self, done: Measured, beyond: int) -> int:
        """How many tests to run before the surrogate is asked again: few at first, more as it knows more."""
        count = 8 if beyond < 24 else 24
        if self.budget.beyond_pairs is not None:
            count = min(count, self.budget.beyond_pairs - beyond)
        if self.budget.inferences is not None:
            count = min(count, int((self.budget.inferences - done.inferences) / self._usual(done)))
        return max(count, 0)

    def _finer(self, done: Measured, plan: Plan, surrogate: Surrogate, worth: float) -> Plan | None:
        """The plan for all tests on more inputs, where that is affordable and tells more than more tests would.

        More inputs lessen the variance that all tests share, more tests the surrogate's own: what counts is how much an
        inference lessens it, which is ``worth`` for tests.
        """
        if self.budget.inferences is None or plan.half_width is None:
            return None
        seen = np.maximum(done.seen, 1)
        wanted = 1 / (1 / self.inputs + np.maximum(1 / seen - 1 / self.inputs, 0) * _FINER**2)
        cost = float(np.maximum(np.ceil(wanted / self.plan.block) * self.plan.block - done.seen, 0).sum())
        if cost == 0 or done.inferences + cost > self.budget.inferences:
            return None
        lessened = _SHARED * float(np.mean(surrogate.shared**2)) * (1 - _FINER**2)
        return replace(plan, half_width=_FINER * plan.half_width) if lessened / cost > worth else None

    def _refined(self, done: Measured, anchors: Anchors, plan: Plan) -> Measured:
        """All tests but the anchors until they are as near as the plan says."""
        count = len(anchor_tests(self.space))
        rest = done.take(slice(count, None))
        open_ = replace(rest, finished=(rest.seen == self.inputs) | (rest.half_width <= (plan.half_width or 0)))
        found = self._measured(open_.tests, plan, anchors, open_, done.take(slice(0, count)), None)
        if self.save is not None:
            self.save(Checkpoint(found, None, plan.half_width))
        return found

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
        found = measure(
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
        return found if done is None else done + found


def anchor_tests(space: Space) -> Tests:
    """The tests that look at all inputs: none, each perturbation at its worst, each pair one short of it."""
    k, top = len(space.names), space.levels
    middle = max(1, top - 1)
    arrange = itertools.permutations if space.ordered else itertools.combinations
    pairs: list[Any] = [] if space.highest < 2 else [((a, middle), (b, middle)) for a, b in arrange(range(k), 2)]
    return space.of([(), *[((j, top),) for j in range(k)], *pairs])
