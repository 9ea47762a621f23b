"""Values worked by hand, identities and exact unbiasedness of the weighted designs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from opmon.estimators._answers import loss_of
from opmon.estimators._losses import EQUAL, classes_of, mean_of
from opmon.estimators.deepest import DeepEstEstimator
from opmon.estimators.rhc import RaoHartleyCochranEstimator
from opmon.estimators.sups import HansenHurwitz
from opmon.estimators.two_stage import TwoStageEstimator
from opmon.types import Draw, Problem, Sample

Y = np.array([1.0, 0.0, 1.0, 0.0])
P = np.array([0.4, 0.3, 0.2, 0.1])


def sups(positions: list[int], p: np.ndarray = P, N: int = 4) -> Draw:
    at = np.array(positions)
    columns = {"probability": p[at], "stratum": np.zeros(len(at), dtype=np.int64)}
    return Draw("sups", N, at, columns, {"stratum_size": np.array([N])})


def test_hansen_hurwitz_worked_by_hand() -> None:
    found = HansenHurwitz().estimate(Sample(sups([0, 1, 2]), Y[[0, 1, 2]]))
    # terms y/(Np): 1/1.6, 0, 1/0.8; mean 0.625; s² = 0.390625
    assert found.value == pytest.approx(1 - 0.625)
    assert found.standard_error == pytest.approx(np.sqrt(0.390625 / 3))


def test_hansen_hurwitz_is_exactly_unbiased() -> None:
    total = 0.0
    for draw in itertools.product(range(4), repeat=2):
        total += P[list(draw)].prod() * HansenHurwitz().estimate(Sample(sups(list(draw)), Y[list(draw)])).value
    assert total == pytest.approx(1 - Y.mean())


def test_hansen_hurwitz_of_equal_probabilities_is_the_mean() -> None:
    y = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    found = HansenHurwitz().estimate(Sample(sups([3, 1, 4, 1, 5], np.full(10, 0.1), 10), y))
    assert found.value == pytest.approx(0.6)
    assert found.standard_error == pytest.approx(np.sqrt(y.var(ddof=1) / 5))


def test_hansen_hurwitz_leaving_the_unit_interval_says_so() -> None:
    found = HansenHurwitz().estimate(Sample(sups([3, 3], P, 4), np.array([1.0, 1.0])))
    assert found.value == pytest.approx(1 - 2.5)
    assert found.low <= found.value
    assert any("by chance" in note for note in found.notes)


@pytest.mark.parametrize("loss", [0.25, 0.1, 4.0])
def test_hansen_hurwitz_of_equal_losses_says_nothing_of_larger_ones(loss: float) -> None:
    draw = sups([0, 1, 2, 3] * 10)
    found = HansenHurwitz().estimate(Sample(draw, np.full(40, loss), "regression"))
    assert found.high == np.inf
    assert found.notes == (EQUAL,)
    assert 0.8 * loss < found.low <= loss


def test_hansen_hurwitz_leaves_a_share_of_1_to_no_chance() -> None:
    columns = {"probability": np.full(7, 1 / 3 / (1 + 1e-15)), "stratum": np.zeros(7, dtype=np.int64)}
    found = HansenHurwitz().estimate(
        Sample(Draw("sups", 3, np.arange(7) % 3, columns, {"stratum_size": [3]}), np.ones(7))
    )
    assert found.value == found.low == 0.0
    assert not any("by chance" in note for note in found.notes)


def rhc(n: int, N: int, wrong: float) -> Sample:
    """``n`` groups of equal size and probability."""
    columns = {
        "probability": np.full(n, 1 / N),
        "group_probability": np.full(n, 1 / n),
        "group_size": np.full(n, N // n),
        "stratum": np.zeros(n, dtype=np.int64),
    }
    draw = Draw("rhc", N, np.arange(n), columns, {"stratum_size": np.array([N])})
    return Sample(draw, (np.arange(n) < wrong * n) * 1.0)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_rao_hartley_cochran_census_is_exact(scale: float) -> None:
    sample = rhc(60, 60, 0.2)
    found = RaoHartleyCochranEstimator().estimate(replace(sample, outcomes=sample.outcomes * scale))
    assert loss_of(found) == pytest.approx((0.2 * scale,) * 3)


def test_rao_hartley_cochran_narrows_as_the_frame_is_used_up() -> None:
    few, half = (RaoHartleyCochranEstimator().estimate(rhc(60, N, 0.2)) for N in (60_000, 120))
    assert 0.95 < half.half_width / (few.half_width * np.sqrt(1 - 60 / 120)) < 1.15


def test_rao_hartley_cochran_worked_by_hand() -> None:
    # groups {0, 1} and {2, 3}: q = 0.7, 0.3; drawn 0 and 3
    columns = {
        "probability": P[[0, 3]],
        "group_probability": np.array([0.7, 0.3]),
        "group_size": np.array([2, 2]),
        "stratum": np.array([0, 0]),
    }
    draw = Draw("rhc", 4, np.array([0, 3]), columns, {"stratum_size": np.array([4])})
    found = RaoHartleyCochranEstimator().estimate(Sample(draw, np.array([1.0, 0.0])))
    theta = 0.7 / (4 * 0.4)
    assert found.value == pytest.approx(1 - theta)
    # c = (8 − 4)/(16 − 8) = 1/2; terms 1/(4·0.4) and 0
    expected = 0.5 * (0.7 * (1 / 1.6 - theta) ** 2 + 0.3 * theta**2)
    assert found.standard_error == pytest.approx(np.sqrt(expected))


def test_two_stage_worked_by_hand_averages_over_the_draws() -> None:
    constants = {"stratum_size": np.array([6, 2, 2]), "stratum_probability": np.array([0.5, 0.3, 0.2])}
    draw = Draw("two_stage", 10, np.array([0, 1, 6]), {"stratum": np.array([0, 0, 1])}, constants)
    found = TwoStageEstimator().estimate(Sample(draw, np.array([1.0, 0.0, 1.0])))
    # terms y N_h/(N ψ_h): 6/5, 0, 2/3; over three draws, not over the two strata hit
    assert found.value == pytest.approx(1 - (1.2 + 2 / 3) / 3)


def test_two_stage_a_stratum_not_drawn_widens_by_all_its_share() -> None:
    constants = {"stratum_size": np.array([600, 400]), "stratum_probability": np.array([0.99, 0.01])}
    draw = Draw("two_stage", 1000, np.arange(50), {"stratum": np.zeros(50, dtype=np.int64)}, constants)
    found = TwoStageEstimator().estimate(Sample(draw, np.zeros(50)))
    assert found.value == 1.0
    assert 0.5 < found.low < 0.6


def deepest_steps(order: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """The conditional probabilities of a path with weights P always active, r = 0.8, and the chance of the path."""
    q, left = [], list(range(4))
    for k, i in enumerate(order):
        q.append(0.25 if k == 0 else 0.8 * P[i] / P[left].sum() + 0.2 / len(left))
        left.remove(i)
    return np.array(q), float(np.prod(q))


@pytest.mark.parametrize(
    ("y", "problem"), [(Y, "classification"), (np.array([0.3, 2.0, 0.0, 0.7]), "regression")], ids=["share", "losses"]
)
def test_deepest_is_exactly_unbiased_over_all_paths(y: np.ndarray, problem: Problem) -> None:
    total = 0.0
    for order in itertools.permutations(range(4), 3):
        q, chance = deepest_steps(order)
        columns = {"probability": q, "stratum": np.zeros(3, dtype=np.int64)}
        draw = Draw("deepest", 4, np.array(order), columns, {"stratum_size": np.array([4])})
        total += chance * loss_of(DeepEstEstimator().estimate(Sample(draw, y[list(order)], problem)))[0]
    assert total == pytest.approx(y.mean())


def test_deepest_worked_by_hand() -> None:
    columns = {"probability": np.array([0.25, 0.5]), "stratum": np.array([0, 0])}
    draw = Draw("deepest", 4, np.array([2, 0]), columns, {"stratum_size": np.array([4])})
    found = DeepEstEstimator().estimate(Sample(draw, np.array([1.0, 1.0])))
    # z_1 = 1/(4·0.25) = 1; z_2 = (1 + 1/0.5)/4 = 0.75
    assert found.value == pytest.approx(1 - 0.875)
    assert found.standard_error == pytest.approx(np.std([1, 0.75], ddof=1) / np.sqrt(2))


def test_missing_answers_are_carried_by_their_class() -> None:
    """Two classes; one of two draws answered in the first, both in the second: the answer counts twice."""
    p = np.full(10, 0.1)
    columns = {"probability": p[:4], "stratum": np.array([0, 0, 1, 1])}
    draw = Draw("sups", 10, np.arange(4), columns, {"stratum_size": np.array([5, 5])})
    found = HansenHurwitz().estimate(Sample(draw, np.array([1.0, np.nan, 0.0, 0.0])))
    assert found.value == pytest.approx(1 - 2 / 4)
    assert found.response == 0.75


def test_losses_interval_leans_to_the_long_tail() -> None:
    terms = np.random.default_rng(1).lognormal(0, 1.2, 60)
    low, high, _ = mean_of(terms, 0.95)
    assert high - terms.mean() > 1.5 * (terms.mean() - low)


def test_losses_of_a_class_never_drawn_may_be_as_large_as_the_largest_seen() -> None:
    y, ones = np.random.default_rng(1).exponential(1, 40), np.ones(40)
    low, high, notes = classes_of(y, ones, np.zeros(40, dtype=np.int64), np.array([500, 500]), 0.95)
    assert high > 0.5 * y.max() + 0.5 * y.mean()
    assert low < 0.5 * y.mean()
    assert notes


def test_an_interval_wide_because_of_the_unseen_bulk_says_so() -> None:
    """Half the frame has a hundredth of the draws: the interval is wide, and a note tells why and what to do."""
    p = np.r_[np.full(500, 0.01 / 500), np.full(500, 0.99 / 500)]
    at = np.arange(500, 560)
    columns = {"probability": p[at], "stratum": np.ones(60, dtype=np.int64)}
    draw = Draw("sups", 1000, at, columns, {"stratum_size": np.array([500, 500])})
    found = HansenHurwitz().estimate(Sample(draw, np.zeros(60)))
    assert found.half_width > 0.2
    assert any("defensive" in note for note in found.notes)
