"""A tomography from beginning to end: what is run, what is predicted, and the result of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opmon.abc import Perturbation
from opmon.errors import InputError
from opmon.robustness.evaluation import Evaluation, Model
from opmon.robustness.measured import Measured, Plan
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.quality import Quality
from opmon.robustness.quality_surrogate import Graded, grade
from opmon.robustness.result import Tomography
from opmon.robustness.run import Codec, Progress, Subject
from opmon.robustness.running import Budget, Checkpoint, Running
from opmon.robustness.space import Space
from opmon.robustness.surrogates.independence import independence_test
from opmon.robustness.surrogates.interactions import Surrogate
from opmon.robustness.surrogates.known import Known
from opmon.types import Json


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
    space.check_runs()
    subject = Subject.of(model, evaluation, perturbations, codec, plan)
    weights = subject.evaluation.weights
    running = Running(subject.look, space, len(evaluation), weights, plan, budget or Budget(), level, progress, save)
    measured, surrogate, known = running.run(resume)
    graded = None
    if quality is not None:
        graded = grade(subject, quality, measured.tests, space, min(quality_inputs, len(evaluation)), progress)
    result = assembled(space, measured, surrogate, known, graded, level, truth_known=evaluation.truth is not None)
    names = subject.evaluation.names
    return result if names is None else replace(result, outcomes=_outcomes(space, measured, known, names))


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
        predicted = surrogate.predicted
        share[places], error[places], low[places], high[places] = (
            predicted.value,
            predicted.error,
            predicted.low,
            predicted.high,
        )
        shared[places] = surrogate.shared
    rows = [at[key] for key in measured.tests.chains()]
    keep = np.ones(len(rows), bool)
    if surrogate is not None:  # it knows a test better than a part of the inputs does; all of them are counted
        keep = (measured.tests.order <= 2) | (measured.seen == measured.right.shape[1])
    chosen = np.array(rows)[keep]
    share[chosen], error[chosen], shared[chosen] = measured.share[keep], measured.error[keep], measured.error[keep]
    low[chosen], high[chosen] = measured.low[keep], measured.high[keep]
    seen[rows] = measured.seen
    weights = measured.weights
    facts: dict[str, Json] = {"relation": "as labelled" if truth_known else "the same answer as unperturbed"}
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
        reach=0.5 if surrogate is None else surrogate.fitted.scales.reach,
        facts=facts,
    )


def _outcomes(space: Space, measured: Measured, known: Known, names: NDArray[np.str_]) -> Outcomes:
    """The outcomes of each input, by its name."""
    at = {key: row for row, key in enumerate(space.tests().chains())}
    rows = [at[key] for key in known.measured.tests.chains()]
    return Outcomes.of(rows, known.outcomes.values, known.outcomes.variance, names, measured.weights)
