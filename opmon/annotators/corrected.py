"""An accuracy corrected for annotators who err, with an interval that carries that uncertainty too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from opmon.annotators._profile import profile_bounds
from opmon.annotators.error_model import ErrorModel, Fitting, fit
from opmon.annotators.opinions import Coded, Opinion, kish
from opmon.errors import InputError
from opmon.estimators._linear import LinearEstimator
from opmon.problems import traits
from opmon.types import Draw, Estimate, Floats, Sample
from opmon.wording import percent

FEWEST = 50
"""Answers that another one, or a known truth, checks: fewer say too little of how often annotators err."""
ALONE = 0.2
"""The share of answers against the model that may lack a second one, and fewer checks do all the same."""
SUPPOSED = 0.8
"""The largest share of the variance that may come from what is only supposed of the errors."""


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

    The interval joins two. The profile likelihood's, over as many independent inputs as the weights are worth (Kish),
    knows that rates end at 0 and that errors and failures stand for each other; what the design tells of the likely
    failures more, or less, than independent inputs would is taken from, or added to, the square of either side. The
    design's own interval of the likely failures, with the variance that errors add in quadrature (linearised), knows of
    failures that hide where few draws fall, and of a frame drawn nearly whole. The wider bound counts on either side.
    """
    if sample.problem is not None and traits(sample.problem).of_numbers:
        raise InputError("squared errors have no error rate; correct them with opmon.annotators.denoised")
    drawn = _Drawn.of(estimator, sample)
    coded = Coded.of([*(opinions[position] for position in drawn.spoken), *others])
    weights = np.concatenate((drawn.size * drawn.share, np.ones(len(others))))
    model = fit(coded, weights, classes)
    likely = (model.failed[: len(drawn.spoken)] > 0.5).astype(np.float64)
    parts = drawn.parts(estimator, sample, model, likely)
    checks = sum(each.checks for each in (*(opinions[position] for position in drawn.spoken), *others))
    why = _why_not(model, len(drawn.spoken), checks, parts.supposed)
    if why:
        return Correction(None, why, checks, model, parts.supposed)
    bounds = profile_bounds(Fitting(coded, weights, classes), model.parameters, level)
    plain = estimator.estimate(replace(sample, outcomes=drawn.each(likely)), level)
    value = plain.value - (model.failure_rate - float(drawn.share @ likely))
    below, above = (
        parts.distance(abs(bound - model.failure_rate), near, level)
        for bound, near in zip(reversed(bounds), (plain.value - plain.low, plain.high - plain.value), strict=True)
    )
    estimate = replace(
        plain,
        value=value,
        low=max(value - below, min(value, 0.0)),
        high=min(value + above, max(value, 1.0)),
        method=f"{sample.draw.design}/corrected",
        standard_error=parts.standard_error,
        notes=(_note(model, checks, level),),
    )
    return Correction(estimate, "", checks, model, parts.supposed)


@dataclass(frozen=True)
class _Parts:
    """The variance of the corrected failure rate, in parts."""

    of_design: float
    """Of the likely failures, as the design has it."""
    if_alike: float
    """Of the likely failures, were the draws independent inputs with weights."""
    of_errors: float
    """What errors add, with what is not known of them."""
    of_supposed: float
    """What of that comes from what is only supposed of them."""

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.of_design + self.of_errors)

    @property
    def supposed(self) -> float:
        """The share of the variance that comes from what is only supposed."""
        total = self.of_design + self.of_errors
        return self.of_supposed / total if total > 0 else 0.0

    def distance(self, by_likelihood: float, by_design: float, level: float) -> float:
        """How far a bound lies from the estimate."""
        z2 = float(ndtri(0.5 + level / 2)) ** 2
        squares = by_likelihood**2 + z2 * (self.of_design - self.if_alike), by_design**2 + z2 * self.of_errors
        return math.sqrt(max(*squares, 0.0))


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

    def parts(self, estimator: LinearEstimator, sample: Sample, model: ErrorModel, likely: Floats) -> _Parts:
        """The parts of the variance; linearised: the failure rate moves by ``C s_i`` with the score of each input."""
        theta, count = model.failure_rate, len(self.spoken)
        lever = model.covariance[0] * theta * (1 - theta)
        moves = model.scores @ lever
        if_alike, of_doubt = self._alike(likely), model.failed[:count] * model.truth[:count, 0]
        of_answers = max(self._alike(moves[:count] * self.size) - if_alike, float(self.share**2 @ of_doubt))
        of_supposed = float(model.layout.precision @ lever**2)
        of_errors = of_answers + float(moves[count:] @ moves[count:]) + of_supposed
        return _Parts(estimator.variance(sample, self.each(likely)), if_alike, of_errors, of_supposed)

    def _alike(self, values: Floats) -> float:
        """The variance of a weighted mean of independent inputs."""
        return float(self.share @ (values - self.share @ values) ** 2) / max(self.size - 1, 1.0)


def _why_not(model: ErrorModel, count: int, checks: int, supposed: float) -> str:
    """Why what is known of the errors is too little; empty where it is enough."""
    coded = model.coded
    there = (coded.code[:count] >= 0).sum(axis=1)
    apart = coded.distinct[:count] > 0
    alone = apart & (there == 1) & (coded.truth[:count] < 0)
    if alone.sum() > ALONE * apart.sum() and checks < FEWEST:
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
