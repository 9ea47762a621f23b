"""A mean squared error less the noise of those who measured the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from opmon.estimators._linear import LinearEstimator
from opmon.types import Estimate, Sample

FEWEST = 20
"""Inputs with two answers or more: fewer say too little of how far answers lie from each other."""


@dataclass(frozen=True)
class Denoised:
    """The estimate less the noise, or why there is none."""

    estimate: Estimate | None
    why: str
    noise: float | None
    """The variance of one answer around the truth; None where no input has two."""
    inputs: int
    """The inputs with two answers or more."""


def denoised(
    estimator: LinearEstimator, sample: Sample, answers: Mapping[int, list[float]], level: float = 0.95
) -> Denoised:
    """Subtract the variance of annotators from a mean squared error; ``answers`` by position in the frame, none for an
    input whose truth is known without them.

    ``MSE = E(r̂ − r)² + σ²`` where an answer is ``r + ε``, with ``E ε = 0``, ``Var ε = σ²``, and ``ε`` independent of
    the model's error. ``σ²`` is the mean of the variances (``m − 1`` below) within inputs of several answers, weighing
    what each stands for. This takes for granted that second answers are asked at random, that no annotator leans to
    one side, and that each input counts with one answer, as the outcomes of a round do. A lean shared by all is seen by
    nobody; a lean of one counts as noise.

    The interval is the plain one, moved by ``σ²``, and widened in quadrature by what ``σ²`` is uncertain by.
    """
    plain = estimator.estimate(sample, level)
    coefficients, positions = estimator.coefficients(sample), sample.draw.positions
    spread = np.array([_variance(answers.get(int(at), [])) for at in positions])
    several = ~np.isnan(spread) & (coefficients > 0)
    count = len(np.unique(positions[several]))
    if not count:
        return Denoised(None, "", None, 0)
    share = coefficients[several] / coefficients[several].sum()
    noise = float(share @ spread[several])
    by_people = np.array([bool(answers.get(int(at))) for at in positions])
    part = float(coefficients[by_people].sum() / coefficients.sum())
    if count < FEWEST:
        why = f"too few to correct: {count} of the inputs have two answers, {FEWEST} must"
        return Denoised(None, why, noise, count)
    error = sqrt(float(share**2 @ (spread[several] - noise) ** 2) * count / (count - 1))
    radius = float(stdtrit(count - 1, 0.5 + level / 2)) * error * part
    value = plain.value - noise * part
    low = value - sqrt((plain.value - plain.low) ** 2 + radius**2)
    high = value + sqrt((plain.high - plain.value) ** 2 + radius**2)
    total = (
        None if plain.standard_error is None else sqrt(plain.standard_error**2 + (radius / ndtri(0.5 + level / 2)) ** 2)
    )
    note = (
        f"less the noise of annotators, which has a standard deviation of {sqrt(noise):.3g}; this "
        f"takes for granted that their errors are independent of each other and of the model's"
    )
    method = f"{sample.draw.design}/corrected"
    found = replace(
        plain, value=value, low=max(low, min(value, 0.0)), high=high, method=method, standard_error=total, notes=(note,)
    )
    return Denoised(found, "", noise, count)


def _variance(several: list[float]) -> float:
    return float(np.var(several, ddof=1)) if len(several) > 1 else float("nan")
