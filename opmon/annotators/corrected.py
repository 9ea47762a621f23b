"""An accuracy corrected for annotators who err, with an interval that carries that uncertainty too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opmon.annotators._profile import profile_bounds
from opmon.annotators.error_model import ErrorModel, Fitting, fit
from opmon.annotators.opinions import Coded, Opinion, kish
from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.types import Draw, Estimate, Floats, Sample
from opmon.wording import percent

FEWEST = 50
"""Answers that another one, or a known truth, checks: fewer say too little of how often annotators err."""
SUPPOSED = 0.8
"""The largest share of the variance that may come from what is only supposed of the errors."""
SCALES = 0.25, 4.0
"""How much more or less than independent inputs the draws of a design may tell."""


@dataclass(frozen=True, eq=False)
class Correction:
    """The corrected estimate, or why there is none."""

    estimate: Estimate | None
    why: str
    """Why there is none, as a sentence; empty where there is one."""
    checks: int
    """The answers that another one, or a known truth, is there to check."""
    model: ErrorModel
    supposed: float
    """The share of the variance that comes from what is only supposed of the errors."""


def corrected(
    estimator: LinearEstimator,
    sample: Sample,
    opinions: Mapping[int, Opinion],
    others: Sequence[Opinion] = (),
    *,
    classes: int,
    level: float = 0.95,
) -> Correction:
    """Correct the estimate of a sample for the errors of those who labelled it.

    ``opinions`` has what was said of every answered input, by its position in the frame; ``others`` are gold tasks and
    inputs of earlier rounds, in groups of their own: they tell of the annotators alone. Of inputs where second answers
    depend on the first ones, the ones without a second answer must be there too.

    The error model is fitted with every input weighing what it stands for in the frame, so that the failure rate and
    the errors are those of the frame whatever the design drew. Answers that a design asks for because of other answers
    (a second one where the first contradicts the model) are no matter: the likelihood is that of all answers. The value
    is the design's own estimate of the failures that are likely ones, moved by what the error model adds or takes.

    The interval is the profile likelihood's, over ``n_e`` independent inputs: as many as give the variance that the
    design's own formula gives for the influence of each draw. It is never shorter, on either side, than the design's
    own interval of the likely failures. Regressions have no wrong classes: see :mod:`.noise`.
    """
    if sample.problem == "regression":
        raise InputError("squared errors have no error rate; correct them with opmon.annotators.denoised")
    drawn = _Drawn.of(estimator, sample)
    coded = Coded.of([*(opinions[position] for position in drawn.spoken), *others])
    weights = np.concatenate((drawn.size * drawn.share, np.ones(len(others))))
    model = fit(coded, weights, classes)
    worth = drawn.worth(estimator, sample, model)
    checks = sum(each.checks for each in (*(opinions[position] for position in drawn.spoken), *others))
    why = _why_not(model, len(drawn.spoken), checks, worth.supposed)
    if why:
        return Correction(None, why, checks, model, worth.supposed)
    weights[: len(drawn.spoken)] *= worth.scale
    low, high = profile_bounds(Fitting(coded, weights, classes), model.parameters, level)
    likely = (model.failed[: len(drawn.spoken)] > 0.5).astype(np.float64)
    plain = estimator.estimate(replace(sample, outcomes=drawn.each(likely)), level)
    moved = (1 - plain.value) - float(drawn.share @ likely)
    value = 1 - model.failure_rate - moved
    estimate = replace(
        plain,
        value=value,
        low=max(min(1 - high - moved, value - (plain.value - plain.low)), min(value, 0.0)),
        high=min(max(1 - low - moved, value + (plain.high - plain.value)), max(value, 1.0)),
        method=f"{sample.draw.design}/corrected",
        standard_error=worth.standard_error,
        notes=(_note(model, checks, level),),
    )
    return Correction(estimate, "", checks, model, worth.supposed)


@dataclass(frozen=True)
class _Worth:
    """What the draws tell: how many independent inputs each one counts for, and the standard error."""

    scale: float
    standard_error: float
    supposed: float


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The answered inputs of a sample, each once, with the share of the frame that each stands for."""

    draw: Draw
    answered: NDArray[np.bool_]
    spoken: list[int]
    row: NDArray[np.int64]
    """The place of each draw's input among ``spoken``; 0 for a draw without an answer."""
    share: Floats
    size: float

    @classmethod
    def of(cls, estimator: LinearEstimator, sample: Sample) -> _Drawn:
        coefficients, answered, positions = estimator.coefficients(sample), sample.answered, sample.draw.positions
        spoken = np.unique(positions[answered])
        row = np.where(answered, np.searchsorted(spoken, positions), 0)
        weight = np.bincount(row[answered], weights=np.maximum(coefficients[answered], 0.0), minlength=len(spoken))
        share = weight / weight.sum()
        return cls(sample.draw, answered, spoken.tolist(), row, share, kish(share))

    def each(self, values: Floats) -> Floats:
        """A value per draw from one per input; NaN without an answer."""
        return np.asarray(np.where(self.answered, values[self.row], np.nan))

    def worth(self, estimator: LinearEstimator, sample: Sample, model: ErrorModel) -> _Worth:
        """Linearised: the failure rate moves by ``C s_i`` with the score ``s_i`` of each input."""
        theta, count = model.failure_rate, len(self.spoken)
        lever = model.covariance[0] * theta * (1 - theta)
        moves = model.scores @ lever
        values = theta + moves[:count] * self.size
        alike = float(self.share @ (values - self.share @ values) ** 2) / max(self.size - 1, 1.0)
        open_ = model.failed[:count]
        unknown = float(self.share**2 @ (open_ * (1 - open_)))  # a frame labelled whole has no other variance
        of_design = max(estimator.variance(sample, self.each(values)), unknown)
        left = max(1 - count / self.draw.frame_size, 1e-3)
        most = SCALES[1] / left
        scale = most if of_design <= alike / most else max(alike / of_design, SCALES[0])
        of_others = float(moves[count:] @ moves[count:])
        of_supposed = float(model.layout.precision @ lever**2)
        total = of_design + of_others + of_supposed
        return _Worth(scale, float(np.sqrt(total)), of_supposed / total if total > 0 else 0.0)


def _why_not(model: ErrorModel, count: int, checks: int, supposed: float) -> str:
    """Why what is known of the errors is too little; empty where it is enough."""
    coded = model.coded
    there = (coded.code[:count] >= 0).sum(axis=1)
    alone = (coded.distinct[:count] > 0) & (there == 1) & (coded.truth[:count] < 0)
    if alone.any() and checks < FEWEST:
        return (
            f"too few to correct: {checks} answers are checked by another one or by a known truth, {FEWEST} are needed"
        )
    if supposed > SUPPOSED:
        return (
            f"too few to correct: {percent(supposed, 0)} of the uncertainty would come from what is only supposed of "
            f"the annotators; more second answers or gold tasks tell it"
        )
    return ""


def _note(model: ErrorModel, checks: int, level: float) -> str:
    errors = model.errors(level)
    said = (model.coded.code >= 0).sum()
    answers = np.bincount(model.coded.who[model.coded.code >= 0], minlength=len(errors))
    error = float(sum(each.error * many for each, many in zip(errors, answers, strict=True)) / max(said, 1))
    return (
        f"corrected for annotators who err on about {percent(error)} of the inputs, as {checks} checked answers tell; "
        f"this takes for granted that they err independently of each other"
    )
