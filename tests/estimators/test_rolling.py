from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators.intervals import wilson
from opmon.estimators.rolling import combine, rolling
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.kept_quantities import kept
from opmon.quantities import ACCURACY, MEAN_SQUARED_ERROR, RMSE, Quantity, mean_squared_error
from opmon.samplers.srs import SimpleRandom
from opmon.testing.populations import classifier
from opmon.types import Draw, Estimate, Sample


def estimate(value: float, size: int = 1000, **others: object) -> Estimate:
    base = Estimate(
        value, value - 0.1, value + 0.05, n=50, frame_size=size, response=1.0, method="srs", standard_error=0.04
    )
    return replace(base, **others)


def loss(value: float, size: int = 1000, **others: object) -> Estimate:
    """Mean squared errors below 1, which could be taken for shares."""
    return estimate(value, size, quantity=MEAN_SQUARED_ERROR, **others)


@pytest.mark.parametrize("quantity", [ACCURACY, MEAN_SQUARED_ERROR])
def test_combine_of_one_round_is_that_round(quantity: Quantity) -> None:
    one = estimate(0.8, quantity=quantity)
    found = combine([one])
    assert found.quantity == quantity
    assert (found.value, found.low, found.high) == (one.value, one.low, one.high)


def test_combine_weighs_rounds_by_their_inputs() -> None:
    found = combine([loss(0.8, 1000), loss(0.6, 3000)])
    assert found.value == pytest.approx(0.65)
    assert found.standard_error == pytest.approx(np.hypot(0.25 * 0.04, 0.75 * 0.04))
    assert found.value - found.low == pytest.approx(np.hypot(0.25 * 0.1, 0.75 * 0.1))
    assert (found.n, found.frame_size) == (100, 4000)


def test_combine_of_many_equal_rounds_narrows_with_the_root() -> None:
    assert combine([loss(0.8)] * 16).half_width == pytest.approx(estimate(0.8).half_width / 4)


def test_combine_stays_provisional_while_a_round_is() -> None:
    assert combine([estimate(0.8), estimate(0.8, provisional=True)]).provisional


def wilsons(share: float, n: int) -> Estimate:
    low, high, _ = wilson(share, n)
    return estimate(share, n=n, low=low, high=high)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.5, 1.0])
def test_combine_of_equal_shares_is_one_share_of_all_draws(share: float) -> None:
    found, (low, high, _) = combine([wilsons(share, 40)] * 5), wilson(share, 200)
    assert (found.value, found.low, found.high) == pytest.approx((share, low, high))


def test_combine_of_rounds_known_exactly_has_no_width() -> None:
    found = combine([estimate(0.9, low=0.9, high=0.9), estimate(0.8, low=0.8, high=0.8)])
    assert found.low == found.value == found.high == pytest.approx(0.85)


def test_combine_of_shares_without_a_failure_allows_one() -> None:
    found = combine([estimate(1.0, low=0.94, high=1.0)] * 9 + [estimate(0.98, low=0.9, high=0.999)])
    assert found.value == pytest.approx(0.998)
    assert found.high > 0.9995


def test_combine_holds_a_value_outside_the_shares() -> None:
    found = combine([estimate(1.02, low=0.9, high=1.02), estimate(1.01, low=0.9, high=1.01)])
    assert found.high == found.value == pytest.approx(1.015)


def test_combine_of_an_unbounded_loss_is_unbounded() -> None:
    assert combine([loss(0.8, high=np.inf), loss(0.8)]).high == np.inf


@pytest.mark.parametrize(
    "other", [{"level": 0.9}, {"quantity": ACCURACY.of("cat")}, {"quantity": mean_squared_error("days")}]
)
def test_combine_refuses_rounds_of_different_kinds(other: dict[str, object]) -> None:
    with pytest.raises(InputError, match="one"):
        combine([estimate(0.8), estimate(0.8, **other)])


def test_combine_needs_a_round() -> None:
    with pytest.raises(InputError, match="at least one"):
        combine([])


def test_rolling_keeps_the_last_rounds() -> None:
    assert rolling([estimate(0.2), estimate(0.6), estimate(0.8)], rounds=2).value == pytest.approx(0.7)


def test_rolling_keeps_the_last_days() -> None:
    ends = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 20, 31)]
    found = rolling([estimate(0.2), estimate(0.6), estimate(0.8)], ends=ends, within=timedelta(days=15))
    assert found.value == pytest.approx(0.7)


def test_rolling_by_time_needs_the_times() -> None:
    with pytest.raises(InputError, match="ends"):
        rolling([estimate(0.2)], within=timedelta(days=1))


def test_rolling_interval_covers_drifting_rounds() -> None:
    rounds = [classifier(size=500 + 300 * k, accuracy=0.95 - 0.05 * k, seed=k) for k in range(4)]
    truth = sum(r.truth * r.frame.size for r in rounds) / sum(r.frame.size for r in rounds)
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = combine(
            [SimpleRandomEstimator().estimate(r.answer(SimpleRandom().draw(r.frame, 60, rng))) for r in rounds]
        )
        held += found.low <= truth <= found.high
    assert held >= 178  # binomial, 200 at 0.95: below this once in 2000


@pytest.mark.parametrize("rounds", [3, 10, 30])
@pytest.mark.parametrize("accuracy", [0.99, 0.95, 0.8])
def test_rolling_interval_covers_accurate_models_on_both_sides(accuracy: float, rounds: int) -> None:
    N, n, wrong = 3000, 50, round(3000 * (1 - accuracy))
    rng = np.random.default_rng(rounds)
    drawn = Draw("srs", N, np.arange(n), constants={"replacement": np.array(False)})
    known = {
        failures: SimpleRandomEstimator().estimate(Sample(drawn, (np.arange(n) < failures) * 1.0, "classification"))
        for failures in range(30)
    }
    misses = np.zeros(2)
    for failures in rng.hypergeometric(wrong, N - wrong, n, size=(300, rounds)):
        found = combine([known[one] for one in failures.tolist()])
        misses += (1 - wrong / N < found.low, 1 - wrong / N > found.high)
    assert misses.sum() <= 28  # binomial, 300 at 0.05: above this once in 1600


def test_a_rmse_is_that_of_all_inputs_and_not_the_mean_of_the_rounds() -> None:
    one = Estimate(2.0, 1.5, 2.5, 50, 1000, 1.0, "srs", quantity=RMSE, standard_error=0.2)
    two = replace(one, value=4.0, low=3.5, high=4.6, frame_size=3000)
    found = combine([one, two])
    assert found.value == pytest.approx(np.sqrt(0.25 * 4 + 0.75 * 16))
    assert found.quantity == RMSE
    squares = [
        replace(each, value=each.value**2, low=each.low**2, high=each.high**2, quantity=MEAN_SQUARED_ERROR)
        for each in (one, two)
    ]
    of_squares = combine(squares)
    assert (found.low, found.high) == pytest.approx((of_squares.low**0.5, of_squares.high**0.5))
    assert found.standard_error == pytest.approx(np.hypot(0.25 * 4 * 0.2, 0.75 * 8 * 0.2) / (2 * found.value))
    alone = combine([one])
    assert (alone.value, alone.low, alone.high) == (2.0, 1.5, 2.5)
    assert combine([replace(one, value=0.0, low=0.0), replace(two, value=0.0, low=0.0)]).value == 0.0
    assert kept({"quantity": "RMSE[night]", "unit": "days"}).of_squares, "also one that was kept before"


def test_the_draws_of_rounds_make_the_interval_of_their_rmse() -> None:
    rng = np.random.default_rng(3)
    estimates, tallies, every = [], [], []
    for scale in (1.0, 3.0):
        draw = SimpleRandom().draw(classifier().frame, 60, rng)
        sample = Sample(draw, (scale * rng.normal(size=60)) ** 2, "regression")
        of_squares = SimpleRandomEstimator().estimate(sample)
        root = [float(bound**0.5) for bound in (of_squares.value, of_squares.low, of_squares.high)]
        estimates.append(replace(of_squares, value=root[0], low=root[1], high=root[2], quantity=RMSE))
        tallies.append(SimpleRandomEstimator().tally(sample))
        every.append(of_squares)
    joined = combine(every, tallies)
    found = combine(estimates, tallies)
    assert (found.value, found.low, found.high) == pytest.approx((joined.value**0.5, joined.low**0.5, joined.high**0.5))
