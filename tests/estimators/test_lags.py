"""How soon truths arrive, learned from lags of which the long ones are not seen yet."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators.lagged import Arrived, arrived, lagged
from opmon.estimators.lags import OTHERS, Arrivals, Curve
from opmon.types import Draw, Sample


def test_without_truncation_it_is_the_share_that_came() -> None:
    curve = Curve.of(np.arange(1.0, 101.0), np.full(100, 200.0), 100.0)
    assert curve.share(np.array([50.0, 100.0, 150.0])) == pytest.approx([0.5, 1.0, 1.0], abs=0.01)
    assert curve.share(np.array([0.5]))[0] > 0
    assert curve.variance(np.array([50.0])) == pytest.approx(0.5 / 50, rel=0.1)


def test_truths_that_were_watched_for_a_short_time_do_not_make_the_lags_look_short() -> None:
    rng = np.random.default_rng(0)
    lags, watched = rng.exponential(1.0, 40_000), rng.uniform(0, 6, 40_000)
    here = lags <= watched
    found = Curve.of(lags[here], watched[here], 5.0).share(np.array([0.5, 1.0, 3.0]))
    assert found == pytest.approx((1 - np.exp([-0.5, -1.0, -3.0])) / (1 - np.exp(-5.0)), abs=0.02)


def test_rare_kinds_are_taken_together_and_few_lags_teach_nothing() -> None:
    lags = np.linspace(0, 1, 100)
    kinds = np.array(["a"] * 40 + ["b"] * 20 + ["c"] * 40)
    assert Arrivals.learned(lags, lags + 9, kinds) is None
    assert Arrivals.learned(lags[:40], lags[:40] + 9, kinds[:40]) is None
    found = Arrivals.learned(lags, lags + 9, np.array(["a"] * 60 + ["b"] * 20 + ["c"] * 20))
    assert found is not None
    assert set(found.curves) == {"a", OTHERS}
    assert (found.kind("a"), found.kind("c"), found.known) == ("a", OTHERS, 100)


def test_a_truth_of_which_nothing_like_it_came_before_is_not_weighed() -> None:
    lags = np.linspace(0, 1, 80)
    found = Arrivals.learned(lags, lags + 9, np.array(["a", "b"] * 40))
    assert found is not None
    assert arrived(found, np.array(["a", "new", ""]), np.ones(3)) is None


def test_equal_shares_change_nothing_and_one_sided_samples_have_bounds() -> None:
    draw = Draw("srs", 1000, np.arange(10), constants={"replacement": np.array(False)})
    kind, weights = np.array(["a"] * 10), np.full(10, 0.1)
    for wrong in (0, 3, 10):
        outcomes = np.array([1.0] * wrong + [0.0] * (10 - wrong))
        found = lagged(Sample(draw, outcomes), weights, Arrived(np.full(10, 0.5), np.full(10, 0.1), kind, 0.5))
        assert found.value == pytest.approx(1 - wrong / 10)
        assert 0 <= found.low < found.high <= 1
    with pytest.raises(InputError, match="number"):
        lagged(Sample(draw, outcomes, "regression"), weights, Arrived(np.ones(10), np.zeros(10), kind, 1.0))
