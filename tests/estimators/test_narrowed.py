"""Intervals that a proxy narrows keep what is not the proxy's, and lose what it foretells."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.estimators._narrowed import evened, reshaped, surer

RNG = np.random.default_rng(3)
SKEW = RNG.lognormal(0, 1.2, 300)
EVEN = RNG.normal(size=300)


def test_terms_of_the_same_shape_are_narrower_by_the_ratio_of_the_standard_errors() -> None:
    assert reshaped(1.0, 3.0, 0.7, SKEW, 0.7 * SKEW, 0.95) == pytest.approx((0.7, 2.1))
    assert surer(SKEW, 0.7 * SKEW, 0.95) == pytest.approx(1.0)


def test_where_the_long_tail_is_foretold_the_long_side_is_shorter_and_the_short_one_longer() -> None:
    below, above = reshaped(1.0, 3.0, 0.7, SKEW, EVEN, 0.95)
    assert 0.7 < below < 1.0
    assert 1.0 < above < 0.9 * 2.1
    assert 0.9 < surer(SKEW, EVEN, 0.95) < 1
    assert surer(EVEN, SKEW, 0.95) == 1  # a proxy that is far off here and there makes nothing surer


def test_a_tail_that_the_proxy_adds_makes_its_side_longer() -> None:
    _, above = reshaped(2.0, 2.0, 0.9, EVEN, SKEW, 0.95)
    assert above > 1.05 * 0.9 * 2.0


def test_what_is_wider_or_has_no_end_stays_so() -> None:
    assert reshaped(1.0, 3.0, 1.01, SKEW, EVEN, 0.95) == pytest.approx((1.01, 3.03))
    assert reshaped(1.0, np.inf, 0.7, SKEW, EVEN, 0.95)[1] == np.inf
    below, above = reshaped(1.0, 3.0, 0.1, SKEW, np.zeros(300), 0.95)
    assert 0 < below < above < 0.3


def test_the_shorter_side_comes_up_by_what_is_taken() -> None:
    assert evened(0.5, 3.0, 1.0, 1.0, 0.95) == (0.5, 3.0)
    below, above = evened(0.5, 3.0, 0.5, 1.0, 0.95)
    assert below == pytest.approx(0.5 + 0.75 * (1.96 - 0.5), abs=1e-3)
    assert above == 3.0
