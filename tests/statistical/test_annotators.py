"""Seeded Monte Carlo studies: accuracies corrected for annotators who err hit the truth where the plain ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from opmon import plugins
from opmon.annotators import corrected
from tests.annotators.teams import Overlap, World

REPETITIONS = 20
CASES = [
    # classes, error, harder, sampler, budget, overlap, gold
    (10, 0.1, False, "srs", 300, 2, 0),
    (2, 0.05, False, "srs", 300, 2, 0),
    (10, 0.1, True, "adaptive", 200, 2, 0),
    (10, 0.1, False, "sups", 200, "failures", 0),
    (2, 0.1, False, "adaptive", 300, 1.3, 0),
    (10, 0.1, False, "srs", 300, 1, 90),
]


@pytest.mark.parametrize(("classes", "error", "harder", "sampler", "budget", "overlap", "gold"), CASES)
def test_corrected_intervals_hold_the_truth(
    classes: int, error: float, harder: bool, sampler: str, budget: int, overlap: Overlap, gold: int
) -> None:
    """The bias within half a standard error of a single round; intervals hold the truth in at least 93 %, with a
    binomial tolerance of one in 2000."""
    world = World.of(classes, error, harder, skips=0.1)
    errors, held, plain_held = [], 0, 0
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([repetition, budget])
        draw = world.draw(sampler, budget, rng)
        sample, opinions = world.labelled(draw, overlap, rng)
        estimator = plugins.make("estimator", draw.design)
        found = corrected(estimator, sample, opinions, world.gold(gold, rng), classes=classes).estimate
        assert found is not None
        errors.append(found.value - world.population.truth)
        held += found.low <= world.population.truth <= found.high
        plain = estimator.estimate(sample)
        plain_held += plain.low <= world.population.truth <= plain.high
    assert abs(np.mean(errors)) < 0.5 * np.std(errors)
    assert held >= stats.binom.ppf(0.0005, REPETITIONS, 0.93)
    if overlap != "failures":
        assert plain_held < held  # the same labels, taken for truth
