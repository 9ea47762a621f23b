"""Rounds for simulated lives: real draws of real samplers, reduced to the numbers that rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.decisions._betting import BETS, RECOVERY_BETS
from opmon.decisions._sequential import weigh
from opmon.decisions.draw_values import draw_values
from opmon.plugins import make
from opmon.testing.designs import design_of
from opmon.testing.populations import Population
from opmon.types import Frame, Sample

Floats = NDArray[np.float64]

UNBIASED = ("srs", "sups", "rhc", "two_stage", "deepest")
"""Designs whose draws are unbiased given the past, or negatively associated."""
STRATIFIED = ("ssrs", "css", "gbs", "adaptive")
SAMPLERS = (*UNBIASED, *STRATIFIED)


@dataclass(frozen=True, eq=False)
class Pool:
    """Rounds of one population: ``growth`` (rounds × bets) at ``line``, the estimated losses and interval ends."""

    loss: float
    """The true mean loss of every round."""
    growth: Floats
    estimates: Floats
    recovery: Floats
    """``recovery`` (rounds × bets): the logarithms of the e-values for recovery."""
    below: NDArray[np.bool_]
    """Whether the 95 % interval lies under the line."""
    surely_below: NDArray[np.bool_]
    """The same at Bonferroni's level for 1,000 rounds."""


def pool(sampler: str, populations: list[Population], line: float, budget: int, rounds: int, seed: int) -> Pool:
    """``rounds`` rounds of ``budget`` labels from populations of the same mean loss."""
    rng = np.random.default_rng(seed)
    chosen, estimator = make("sampler", sampler), make("estimator", sampler)
    growth, recovery = np.empty((rounds, len(BETS))), np.empty((rounds, len(RECOVERY_BETS)))
    estimates = np.empty(rounds)
    below, surely = np.empty(rounds, dtype=bool), np.empty(rounds, dtype=bool)
    for k, sample in enumerate(samples(chosen, populations, budget, rounds, rng)):
        found = weigh(draw_values(sample, design_of(sample)), line)
        growth[k], recovery[k] = found.alarm, found.recovery
        estimate = estimator.estimate(sample)
        estimates[k] = 1 - estimate.value
        below[k] = estimate.high < 1 - line
        surely[k] = below[k] and estimator.estimate(sample, 1 - 2 * 0.05 / 1000).high < 1 - line
    loss = 1 - float(np.mean([population.truth for population in populations]))
    return Pool(loss, growth, estimates, recovery, below, surely)


def samples(
    sampler: object, populations: list[Population], budget: int, rounds: int, rng: np.random.Generator
) -> Iterator[Sample]:
    """One population after another, each drawn from many times."""
    each = -(-rounds // len(populations))
    for number, population in enumerate(populations):
        count = min(each, rounds - number * each)
        if hasattr(sampler, "prepare"):
            ready = sampler.prepare(population.frame, budget)
            first = (population.answer(ready(rng)) for _ in range(count))
        else:
            first = (population.answer(sampler.draw(population.frame, budget, rng)) for _ in range(count))
        yield from (finished(sampler, population, budget, sample, rng) for sample in first)


def finished(sampler: object, population: Population, budget: int, sample: Sample, rng: np.random.Generator) -> Sample:
    """The sample with all its waves."""
    while len(sample.draw) < budget:
        draw = sampler.next_batch(population.frame, budget, sample, rng)
        if len(draw) == len(sample.draw):
            break
        sample = population.answer(draw)
    return sample


def with_loss(population: Population, loss: float, size: int, rng: np.random.Generator) -> Population:
    """``size`` inputs of a population, failures oversampled or thinned out so that the mean loss is ``loss``."""
    failed = np.flatnonzero(population.outcomes > 0.5)
    passed = np.flatnonzero(population.outcomes <= 0.5)
    wrong = round(loss * size)
    chosen = np.concatenate([rng.choice(failed, wrong), rng.choice(passed, size - wrong)])
    variables = {name: values[chosen] for name, values in population.frame.variables.items()}
    return Population(Frame(variables, size=size), population.outcomes[chosen])
