"""Scores that people give to outputs: losses between 0 and 1, and more is better."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators import SimpleRandomEstimator
from opmon.estimators.rolling import combine
from opmon.estimators.scores import of_scores
from opmon.problems import is_binary
from opmon.quantities import MEAN_SCORE
from opmon.types import Draw, Estimate, Floats, Sample

RNG = np.random.default_rng(0)
SIZE = 5000
ROUNDS = 300
STARS = np.array([0, 0.25, 0.5, 0.75, 1])
POPULATIONS = {
    "mostly five stars": RNG.choice(STARS, SIZE, p=[0.02, 0.03, 0.05, 0.2, 0.7]),
    "any stars": RNG.choice(STARS, SIZE),
    "nearly all perfect": np.where(RNG.random(SIZE) < 0.95, 1.0, RNG.random(SIZE)),
}


def estimated(scores: Floats, n: int, rng: np.random.Generator) -> tuple[Estimate, Sample]:
    positions = rng.choice(len(scores), n, replace=False)
    draw = Draw("srs", len(scores), positions, constants={"replacement": np.array(False)})
    sample = Sample(draw, 1 - scores[positions], "judged")
    return SimpleRandomEstimator().estimate(sample), sample


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("n", [30, 100])
def test_the_interval_of_a_mean_score_covers(name: str, n: int) -> None:
    scores, rng = POPULATIONS[name], np.random.default_rng(n)
    found = [estimated(scores, n, rng)[0] for _ in range(ROUNDS)]
    truth = float(scores.mean())
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert covered >= 0.93 - 2 * np.sqrt(0.95 * 0.05 / ROUNDS)
    bias = np.mean([each.value for each in found]) - truth
    assert abs(bias) < 4 * scores.std() / np.sqrt(n * ROUNDS)
    assert all(0 <= each.low <= each.value <= each.high <= 1 for each in found)


def test_a_mean_score_over_rounds_is_narrower_and_covers() -> None:
    scores, rng = POPULATIONS["any stars"], np.random.default_rng(1)
    hits, widths = 0, []
    for _ in range(60):
        rounds = [estimated(scores, 60, rng) for _ in range(4)]
        tallies = [SimpleRandomEstimator().tally(sample) for _, sample in rounds]
        whole = combine([estimate for estimate, _ in rounds], tallies)
        hits += whole.low <= scores.mean() <= whole.high
        widths.append((whole.high - whole.low) / (rounds[0][0].high - rounds[0][0].low))
    assert hits >= 52
    assert np.median(widths) < 0.6


def test_scores_that_are_all_the_same_are_not_known_exactly() -> None:
    same = np.full(SIZE, 0.75)
    estimate, sample = estimated(same, 30, np.random.default_rng(0))
    assert estimate.value == pytest.approx(0.75)
    assert not is_binary(sample.outcomes, "judged")
    assert estimate.quantity == MEAN_SCORE
    assert estimate.high - estimate.low > 0.05, "thirty alike do not show that there is nothing else"


def test_passes_get_the_interval_of_a_share() -> None:
    passed = (np.random.default_rng(3).random(SIZE) < 0.9) * 1.0
    estimate, sample = estimated(passed, 50, np.random.default_rng(0))
    share = SimpleRandomEstimator().estimate(Sample(sample.draw, sample.outcomes, "classification"))
    assert (estimate.low, estimate.high) == (share.low, share.high)


@pytest.mark.parametrize("others", [0.0, 0.02])
def test_scores_that_are_nearly_all_the_same_have_two_ends(others: float) -> None:
    rng = np.random.default_rng(1)
    scores = np.where(rng.random(SIZE) < others, rng.choice(STARS, SIZE), 0.5)
    widths, covered = [], []
    for _ in range(ROUNDS):
        estimate, sample = estimated(scores, 60, rng)
        told = of_scores(SimpleRandomEstimator(), sample, estimate)
        assert estimate.low <= told.low <= told.value <= told.high <= estimate.high
        widths.append(told.high - told.low)
        covered.append(told.low <= scores.mean() <= told.high)
    assert np.mean(covered) >= 0.93
    assert np.mean(widths) < 0.08, "0.30 to 0.53 by the spread of the scores alone"
