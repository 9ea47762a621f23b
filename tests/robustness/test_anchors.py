from __future__ import annotations

import numpy as np
import pytest

from opmon.robustness._anchors import Anchors
from opmon.robustness._sequences import share_bounds


def world(seed: int, inputs: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=inputs)
    anchors = strength[None] > np.array([[-1.0], [0.0], [1.0]])
    values = strength + 0.4 * rng.normal(size=(20, inputs)) > np.linspace(-1.5, 1.5, 20)[:, None]
    return anchors, strength[None] - np.array([[-1.0], [0.0], [1.0]]), values


def first(values: np.ndarray, count: int) -> np.ndarray:
    """Looked at on the first inputs only."""
    return np.where(np.arange(values.shape[1]) < count, values, -1)


def test_census_is_exact() -> None:
    right, margin, values = world(0)
    share, error, half = Anchors.of(right, margin, None, 1500).estimate(values, 0.95)
    assert share == pytest.approx(values.mean(axis=1), abs=1e-12)
    assert error == pytest.approx(np.zeros(20))
    assert half == pytest.approx(np.zeros(20))


def test_without_anchors_it_is_the_mean() -> None:
    _, _, values = world(1)
    share, _, _ = Anchors.of(np.empty((0, 1500)), None, None, 1500).estimate(first(values, 300), 0.95)
    assert share == pytest.approx(values[:, :300].mean(axis=1))


def test_anchors_lower_the_error_and_the_error_is_told() -> None:
    plain, helped, told = [], [], []
    for seed in range(30):
        right, margin, values = world(seed)
        truth = values.mean(axis=1)
        plain += ((values[:, :300].mean(axis=1) - truth) ** 2).tolist()
        share, error, _ = Anchors.of(right, margin, None, 1500).estimate(first(values, 300), 0.95)
        helped += ((share - truth) ** 2).tolist()
        told += (error**2).tolist()
    assert np.sqrt(np.mean(helped)) < 0.6 * np.sqrt(np.mean(plain))
    assert np.sqrt(np.mean(told)) == pytest.approx(np.sqrt(np.mean(helped)), rel=0.25)


def test_sequence_covers_at_all_times() -> None:
    """Looked at after every 50 inputs; asymptotic, so a little room."""
    left = []
    for seed in range(30):
        right, margin, values = world(seed)
        anchors, truth = Anchors.of(right, margin, None, 1500), values.mean(axis=1)
        ever = np.zeros(20, bool)
        for n in range(100, 1500, 50):
            share, _, half = anchors.estimate(first(values, n), 0.95)
            ever |= np.abs(share - truth) > half + 1e-12
        left += ever.tolist()
    assert np.mean(left) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def test_weights_are_heard() -> None:
    right, margin, values = world(2)
    weights = np.random.default_rng(0).gamma(2.0, 1.0, 1500)
    share, _, _ = Anchors.of(right, margin, weights, 1500).estimate(values, 0.95)
    assert share == pytest.approx(values @ weights / weights.sum(), abs=1e-9)


def test_estimate_stays_among_what_is_possible() -> None:
    """What is left may be all wrong or all right, and no more."""
    right, margin, _values = world(3)
    share, _, _ = Anchors.of(right, margin, None, 1500).estimate(first(np.zeros((1, 1500)), 1400), 0.95)
    assert 0 <= share[0] <= 100 / 1500


def test_share_bounds_hold_over_time() -> None:
    rng, total, left = np.random.default_rng(0), 400, []
    for _ in range(300):
        values = rng.permutation(np.arange(total) < 280)
        ever = False
        for n in range(20, total + 1, 20):
            low, high = share_bounds(np.array([values[:n].sum()]), n, total, 0.9)
            ever |= not low[0] - 1e-12 <= 0.7 <= high[0] + 1e-12
        left.append(ever)
    assert np.mean(left) <= 0.1


def test_share_bounds_by_hand() -> None:
    """prior(R)/posterior(R) < 1/α, counted out for three of four inputs seen."""
    low, high = share_bounds(np.array([3, 0]), 3, 4, 0.95)
    assert low.tolist() == [0.75, 0.0]
    assert high.tolist() == [1.0, 0.25]
