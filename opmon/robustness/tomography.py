"""A tomography from beginning to end: anchors, all pairs, the few tests beyond that tell most, the rest predicted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.robustness.anchors_core import Anchors
from opmon.robustness.evaluation import Evaluation, Model
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.perturbations.core import Perturbation
from opmon.robustness.quality import Quality
from opmon.robustness.quality_surrogate import Graded, grade
from opmon.robustness.result import Tomography
from opmon.robustness.run import Codec, Look, Progress, Subject, measure
from opmon.robustness.space import Space, Tests
from opmon.robustness.surrogates.core import Known
from opmon.robustness.surrogates.independence import independence_test
from opmon.robustness.surrogates.interactions import Surrogate, interactions


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is spent beyond pairs: ``beyond_pairs`` tests, or as many as ``inferences`` in all allow (``None``: no
    limit of that kind)."""

    beyond_pairs: int | None = 24
    inferences: int | None = None

    def __post_init__(self) -> None:
        for name in ("beyond_pairs", "inferences"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} counts and cannot be negative; got {value}")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a run that was broken off goes on from: tests that are done, and those under way."""

    done: Measured | None
    under_way: Measured | None


def tomography(
    model: Model,
    evaluation: Evaluation,
    perturbations: Sequence[Perturbation],
    space: Space,
    codec: Codec,
    *,
    plan: Plan | None = None,
    budget: Budget | None = None,
    quality: Quality | None = None,
    quality_inputs: int = 300,
    level: float = 0.9,
    progress: Progress | None = None,
    resume: Checkpoint | None = None,
    save: Callable[[Checkpoint], None] | None = None,
) -> Tomography:
    """Map how right ``model`` stays over ``space``, one perturbation per name of the space.

    ``save`` is given a checkpoint after every block of inputs; with ``resume`` the result is that of an unbroken run.
    Intervals are of ``level``.
    """
    plan = plan or Plan()
    if len(perturbations) != len(space.names):
        raise InputError(f"one perturbation for each of {', '.join(space.names)}; got {len(perturbations)}")
    subject = Subject.of(model, evaluation, perturbations, codec, plan)
    weights = subject.evaluation.weights
    running = Running(subject.look, space, len(evaluation), weights, plan, budget or Budget(), level, progress, save)
    measured, surrogate, known = running.run(resume)
    graded = None
    if quality is not None:
        graded = grade(subject, quality, measured.tests, space, min(quality_inputs, len(evaluation)), progress)
    return assembled(space, measured, surrogate, known, graded, level, truth_known=evaluation.truth is not None)


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
        done = self._stage(anchor_tests(self.space), replace(self.plan, half_width=None), start, None)
        count = len(anchor_tests(self.space))
        margin = None if done.margin is None else done.margin[:count]
        anchors = Anchors.of(done.right[:count], margin, self.weights, self.inputs)
        start = Checkpoint(done, start.under_way)
        done = self._stage(self.space.tests(0, 2), self.plan, start, anchors)
        beyond = self.space.tests(3)
        known = Known(done, anchors)
        if not len(beyond):
            return done, None, known
        surrogate = interactions(known, beyond, self.space.levels, self.level)
        while chosen := surrogate.next_tests(
            self._affordable(done, len(surrogate.rows)), 0.3 * (self.plan.half_width or 0.01)
        ):
            done = self._stage(beyond.take(chosen), self.plan, Checkpoint(done, start.under_way), anchors)
            known = Known(done, anchors)
            surrogate = interactions(known, beyond, self.space.levels, self.level)
        return done, surrogate, known

    def _affordable(self, done: Measured, beyond: int) -> int:
        """How many tests to run before the surrogate is asked again: few at first, more as it knows more."""
        count = 8 if beyond < 24 else 24
        if self.budget.beyond_pairs is not None:
            count = min(count, self.budget.beyond_pairs - beyond)
        if self.budget.inferences is not None:
            usual = max(float(np.quantile(done.seen, 0.6)), 1.0)
            count = min(count, int((self.budget.inferences - done.inferences) / usual))
        return max(count, 0)

    def _stage(self, tests: Tests, plan: Plan, start: Checkpoint, anchors: Anchors | None) -> Measured:
        """``start.done`` with ``tests`` added; tests already done are not run again."""
        have = set() if start.done is None else set(start.done.tests.chains())
        open_ = tests.take(np.array([key not in have for key in tests.chains()], bool))
        if not len(open_):
            assert start.done is not None
            return start.done
        under_way = start.under_way
        if under_way is not None and under_way.tests.chains() != open_.chains():
            under_way = None
        before = 0 if start.done is None else start.done.inferences
        save, progress = self.save, self.progress
        found = measure(
            self.look,
            open_,
            self.inputs,
            plan,
            weights=self.weights,
            anchors=anchors,
            resume=under_way,
            save=None if save is None else lambda state: save(Checkpoint(start.done, state)),
            progress=None
            if progress is None
            else lambda now, most: progress("inferences", before + now, before + most),
        )
        return found if start.done is None else start.done + found


def anchor_tests(space: Space) -> Tests:
    """The tests that look at all inputs: none, each perturbation at its worst, each pair one short of it."""
    k, top = len(space.names), space.levels
    middle = max(1, top - 1)
    arrange = itertools.permutations if space.ordered else itertools.combinations
    pairs: list[Any] = [] if space.highest < 2 else [((a, middle), (b, middle)) for a, b in arrange(range(k), 2)]
    return space.of([(), *[((j, top),) for j in range(k)], *pairs])


def assembled(
    space: Space,
    measured: Measured,
    surrogate: Surrogate | None,
    known: Known,
    graded: Graded | None,
    level: float,
    *,
    truth_known: bool,
) -> Tomography:
    """The result: what was measured as measured, the rest as predicted, in the order of ``space.tests()``."""
    tests = space.tests()
    at = {key: row for row, key in enumerate(tests.chains())}
    share, error, shared, low, high = (np.zeros(len(tests)) for _ in range(5))
    seen = np.zeros(len(tests), np.int64)
    if surrogate is not None:
        places = [at[key] for key in surrogate.tests.chains()]
        found = surrogate.predicted
        share[places], error[places], low[places], high[places] = found.value, found.error, found.low, found.high
        shared[places] = surrogate.shared
    rows = [at[key] for key in measured.tests.chains()]
    keep = np.ones(len(rows), bool)
    if surrogate is not None:  # the surrogate knows a measured test better than its own inputs do
        keep = measured.tests.order <= 2
    chosen = np.array(rows)[keep]
    share[chosen], error[chosen], shared[chosen] = measured.share[keep], measured.error[keep], measured.error[keep]
    low[chosen], high[chosen] = measured.low[keep], measured.high[keep]
    seen[rows] = measured.seen
    weights = measured.weights
    facts: dict[str, Any] = {"relation": "as labelled" if truth_known else "the same answer as unperturbed"}
    if len(space.names) > 1 and space.highest > 1:
        test = independence_test(known)
        facts["independence"] = {"p_value": test.p_value, "sizes_suffice": test.sizes_suffice}
    return Tomography(
        space=space,
        tests=tests,
        share=share,
        error=error,
        shared=shared,
        low=low,
        high=high,
        seen=seen,
        inputs=measured.right.shape[1],
        effective_inputs=float(measured.right.shape[1] if weights is None else weights.sum() ** 2 / (weights**2).sum()),
        level=level,
        quality=None if graded is None else graded.value,
        quality_error=None if graded is None else graded.error,
        reach=0.5 if surrogate is None else surrogate.reach,
        facts=facts,
    )
