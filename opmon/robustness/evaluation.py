"""The inputs a tomography is made on, and what it means that the model is still right on one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError, ModelError
from opmon.problems import near_enough, traits
from opmon.types import Array, Problem

Model = Callable[[Array], Array]
"""Inputs to answers: one answer per input (a class or a number), or one row of scores per input, a column for each
class numbered from 0. With scores, surrogates see how near an answer is to changing, and predict better."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The inputs that perturbations are tried on, with their truth where it is known.

    ``truth`` None: an input counts as right while the model gives its unperturbed answer. ``weights`` are what each
    input stands for in production. Regression is right within ``tolerance`` of the truth. ``names`` tell the inputs
    from each other by what they hold, whatever model takes them: by them two tomographies are compared.
    """

    inputs: Array
    truth: Array | None = None
    weights: NDArray[np.float64] | None = None
    problem: Problem = "classification"
    tolerance: float | None = None
    names: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise InputError(f"a tomography needs at least two inputs; got {len(self.inputs)}")
        for name in ("truth", "weights", "names"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != (len(self.inputs),):
                raise InputError(f"{name} has one entry for each of {len(self.inputs)} inputs; got {np.shape(values)}")
        if self.weights is not None and not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise InputError("weights are finite and above 0: an input that stands for nothing is left out")
        if traits(self.problem).of_numbers and not (self.tolerance is not None and self.tolerance > 0):
            raise InputError(
                f"a regression model is right within a tolerance above 0 of the truth; got {self.tolerance}"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def shuffled(self, seed: int) -> tuple[Evaluation, NDArray[np.int64]]:
        """The evaluation in the random order in which all tests look at its inputs, and that order."""
        order = np.random.default_rng([seed, 0x5EED]).permutation(len(self.inputs))
        truth = None if self.truth is None else self.truth[order]
        weights = None if self.weights is None else self.weights[order]
        names = None if self.names is None else self.names[order]
        return Evaluation(self.inputs[order], truth, weights, self.problem, self.tolerance, names), order


@dataclass(frozen=True, eq=False)
class Judged:
    """``right`` says of each answer whether it is; ``margin`` by how much (None: the model gives no scores).

    Of scores: the log-odds between the right class and the best other one; of a number: 4·(1 − |error| / tolerance).
    """

    right: NDArray[np.bool_]
    margin: NDArray[np.float32] | None


def judged(answers: Array, truth: Array, evaluation: Evaluation) -> Judged:
    """The answers compared with the truth of the same inputs."""
    answers = np.asarray(answers)
    if len(answers) != len(truth):
        raise ModelError(f"the model gave {len(answers)} answers to {len(truth)} inputs; it must give one for each")
    if traits(evaluation.problem).of_numbers:
        said, true = answers.reshape(len(answers), -1)[:, 0].astype(np.float64), truth.astype(np.float64)
        error, tolerance = said - true, float(evaluation.tolerance or 0)
        margin = np.where(np.isfinite(error), np.clip(4 - 4 * np.abs(error) / tolerance, -20, 4), -20)
        return Judged(near_enough(true, said, tolerance), margin.astype(np.float32))
    if answers.ndim == 1:
        return Judged(np.asarray(answers == truth), None)
    return _by_scores(answers, truth)


def own_answers(answers: Array, evaluation: Evaluation) -> Array:
    """The model's answers to the unperturbed inputs, as their truth."""
    if traits(evaluation.problem).of_numbers:
        return np.asarray(answers).reshape(len(answers), -1)[:, 0].astype(np.float64)
    return answers if answers.ndim == 1 else answers.argmax(axis=1)


def _by_scores(scores: Array, truth: Array) -> Judged:
    column = truth.astype(np.int64)
    if column.min(initial=0) < 0 or column.max(initial=0) >= scores.shape[1]:
        raise ModelError(
            f"the truth names class {int(column.max())}, and the model scores {scores.shape[1]} classes numbered from 0"
        )
    rows = np.arange(len(scores))
    if scores.min() >= 0 and np.abs(scores.sum(axis=1) - 1).max() < 0.02:  # probabilities
        scores = np.log(np.maximum(scores, 1e-9))
    own = scores[rows, column].astype(np.float32)
    others = scores.astype(np.float32, copy=True)
    others[rows, column] = -np.inf
    with np.errstate(invalid="ignore"):
        margin = own - others.max(axis=1)
    lost = ~np.isfinite(margin)  # no answer is no right answer
    return Judged((scores.argmax(axis=1) == column) & ~lost, np.where(lost, np.float32(-20), margin))
