"""Measures of the errors of a regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn import metrics

from opmon.errors import InputError
from opmon.estimators._quantiles import ABOVE
from opmon.estimators.measured import measured
from opmon.quantities import MAE
from tests.measures.made import SRS, drawn, estimate, measure, predicted

RNG = np.random.default_rng(3)
TRUTH = 5 + RNG.normal(size=60)
SAID = TRUTH + RNG.normal(size=60)
ROWS = predicted(TRUTH, SAID)
KNOWN: list[tuple[str, Callable[..., float], float]] = [
    ("mean_squared_error", metrics.mean_squared_error, 1),
    ("root_mean_squared_error", metrics.root_mean_squared_error, 1),
    ("mean_absolute_error", metrics.mean_absolute_error, 1),
    ("mean_absolute_percentage_error", metrics.mean_absolute_percentage_error, 100),
    ("r_squared", metrics.r2_score, 1),
]
EVERY = [*(name for name, _, _ in KNOWN), "bias", "error_quantile"]


@pytest.mark.parametrize(("name", "other", "factor"), KNOWN)
def test_the_value_is_that_of_scikit_learn_with_weights_too(
    name: str, other: Callable[..., float], factor: float
) -> None:
    weights = np.random.default_rng(1).uniform(0.5, 2, 60)
    if not measure(name).curved:  # the estimate of others is without the bias that the plain value has
        assert estimate(ROWS, measure(name)).value == pytest.approx(factor * other(TRUTH, SAID))
    assert measure(name).value(ROWS, np.ones(60)) == pytest.approx(factor * other(TRUTH, SAID))
    assert measure(name).value(ROWS, weights) == pytest.approx(factor * other(TRUTH, SAID, sample_weight=weights))


@pytest.mark.parametrize("name", [*(name for name, _, _ in KNOWN), "bias"])
def test_the_influence_is_the_derivative_by_the_weights(name: str) -> None:
    one, weights = measure(name), np.full(60, 1 / 60)
    influence, step = one.linearised(ROWS, weights), 1e-7
    assert influence is not None
    for k in range(0, 60, 7):
        moved = weights + step * (np.arange(60) == k)
        slope = (one.value(ROWS, moved) - one.value(ROWS, weights)) / step
        assert slope == pytest.approx(influence[k], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", EVERY)
def test_the_interval_holds_the_value_and_a_census_is_exact(name: str) -> None:
    found = estimate(ROWS, measure(name))
    assert found.low < found.value < found.high
    whole = measured(SRS, drawn(ROWS, 60, replacement=False), ROWS, measure(name))
    assert whole.low == pytest.approx(whole.value) == pytest.approx(whole.high)


@pytest.mark.parametrize("name", EVERY)
def test_an_interval_in_another_unit_is_the_same(name: str) -> None:
    if name == "mean_absolute_percentage_error":
        return
    power = {"mean_squared_error": 2, "r_squared": 0}.get(name, 1)
    one, other = estimate(ROWS, measure(name)), estimate(predicted(1000 * TRUTH, 1000 * SAID), measure(name))
    scaled = [1000**power * bound for bound in (one.value, one.low, one.high)]
    assert [other.value, other.low, other.high] == pytest.approx(scaled)


def test_it_is_told_in_the_unit_of_the_label() -> None:
    found = estimate(ROWS, measure("mean_absolute_error"), "days")
    assert found.quantity == MAE.measured_in("days")
    assert found.quantity.better == "lower"
    names = [estimate(ROWS, measure(name), "days").quantity.title for name in EVERY]
    assert names == [
        "mean squared error (days²)",
        "RMSE (days)",
        "MAE (days)",
        "MAPE (%)",
        "R²",
        "bias (days)",
        "90 % quantile of the absolute error (days)",
    ]
    assert estimate(ROWS, measure("within_tolerance", tolerance=2.0), "days").quantity.name == "share within 2 days"


def test_the_share_within_a_tolerance_is_a_share_of_inputs() -> None:
    found = estimate(ROWS, measure("within_tolerance", tolerance=1.0))
    assert found.value == pytest.approx((np.abs(TRUTH - SAID) <= 1).mean())
    assert found.method == "srs/mid-p"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("tolerance", [0.1, 0.05])
def test_an_error_of_just_the_tolerance_is_near_enough(tolerance: float, dtype: type) -> None:
    """Labels and answers have a digit or two behind the point; no difference of them is just a tenth."""
    truth = np.round(np.arange(1, 1001) * tolerance, 2)
    at, beyond = (np.round(truth + steps * tolerance, 2).astype(dtype).astype(np.float64) for steps in (1, 2))
    one = measure("within_tolerance", tolerance=tolerance)
    assert one.value(predicted(truth, at), np.ones(1000)) == 1
    assert one.value(predicted(truth, beyond), np.ones(1000)) == 0
    assert one.value(predicted(1e6 + truth, 1e6 + truth + 1.01 * tolerance), np.ones(1000)) == 0


def test_truths_of_zero_are_left_out_of_percentages_and_told() -> None:
    rows = predicted([0.0, 0.0, *TRUTH], [1.0, 2.0, *SAID])
    found = estimate(rows, measure("mean_absolute_percentage_error"))
    assert found.value == pytest.approx(100 * metrics.mean_absolute_percentage_error(TRUTH, SAID))
    assert "the truth of 2 of 62 answers is 0: they are left out" in found.notes
    with pytest.raises(InputError, match="the truth of every answer is 0; take the MAE"):
        estimate(predicted([0.0] * 9, [1.0] * 9), measure("mean_absolute_percentage_error"))


def test_no_share_of_a_truth_that_never_varies_is_explained() -> None:
    with pytest.raises(InputError, match="R² is undefined: the truth of all 9 answers is the same"):
        estimate(predicted([4.0] * 9, range(9)), measure("r_squared"))


def test_a_quantile_beyond_the_draws_has_no_end_there() -> None:
    found = estimate(ROWS, measure("error_quantile", share=0.99))
    assert found.high == np.inf
    assert ABOVE in found.notes
    assert found.low > 0


@pytest.mark.parametrize(
    ("name", "parameters"), [("error_quantile", {"share": 1.0}), ("within_tolerance", {"tolerance": -1.0})]
)
def test_parameters_out_of_range_are_refused(name: str, parameters: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"got (1\.0|-1\.0)"):
        measure(name, **parameters)


def test_estimates_from_few_labels_are_right_on_average() -> None:
    """R² is a ratio of mean squares, a quantile lies between two labels: both were low by a fifth of their error."""
    rng = np.random.default_rng(5)
    truth = np.exp(0.5 * rng.normal(size=5000))
    every = predicted(truth, truth + 0.4 * truth * rng.normal(size=5000))
    weights = np.full(5000, 1 / 5000)
    for name, most in (("r_squared", 0.15), ("error_quantile", 0.15)):
        one = measure(name)
        found = [estimate(every.only(rng.choice(5000, 60, replace=False)), one).value for _ in range(600)]
        right = one.value(every, weights)
        assert abs(np.mean(found) - right) < most * np.std(found), name
