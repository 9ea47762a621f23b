"""Holes filled from what inputs did under other tests, and pairs rid of their noise."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from opmon.robustness._completed import completed, similar
from opmon.robustness.measured import Plan, block_orders
from opmon.robustness.space import Space
from opmon.robustness.surrogates._pairs import _parts, smoothed

SPACE = Space(("a", "b"))


def outcomes(seed: int, inputs: int = 1000) -> tuple[Any, np.ndarray]:
    """Tests of order ≤ 2 on inputs whose strength decides; the truth."""
    rng = np.random.default_rng(seed)
    tests = SPACE.tests(0, 2)
    weight = rng.gamma(4.0, 0.25, (inputs, 2))
    margin = rng.gamma(3.0, 1.0, inputs) - tests.severities @ weight.T / 2
    return tests, (margin > 0).astype(float)


def with_holes(tests: Any, truth: np.ndarray, share: float) -> np.ndarray:
    plan = Plan(half_width=0.03, block=50)
    orders, table = block_orders(tests, truth.shape[1], plan), np.full(truth.shape, np.nan)
    for row, order in enumerate(orders):
        for block in order[: round(share * len(order))]:
            table[row, block * 50 : block * 50 + 50] = truth[row, block * 50 : block * 50 + 50]
    return table


def filled(tests: Any, table: np.ndarray, weights: np.ndarray | None = None) -> Any:
    weights = np.ones(table.shape[1]) if weights is None else weights
    return completed(table, similar(tests, 5), weights, np.nanmean(table, axis=1))


@pytest.mark.parametrize("table", [similar, lambda tests, levels: _parts(tests, levels, 1.0)], ids=["all", "pairs"])
def test_memory_does_not_grow_with_perturbations(table: Any) -> None:
    peaks = []
    for names in ("abcd", "abcdefghijkl"):
        tests = Space(tuple(names), max_order=3).tests().take(slice(500))
        tracemalloc.start()
        table(tests, 5)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_all_tests_beside_each_other_take_one_table() -> None:
    tests = Space(tuple("abcdefghijkl"), max_order=2).tests().take(slice(500))
    tracemalloc.start()
    similar(tests, 5)
    assert tracemalloc.get_traced_memory()[1] < 1.5 * 500**2 * 8
    tracemalloc.stop()


def test_tests_are_the_less_similar_the_further_apart() -> None:
    tests = Space(("a", "b"), ordered=True).of([[(0, 5)], [(0, 4)], [(0, 5), (1, 2)], [(1, 2), (0, 5)]])
    apart = [[0, 0.2, 0.6, 0.6], [0.2, 0, 0.8, 0.8], [0.6, 0.8, 0, 0.2], [0.6, 0.8, 0.2, 0]]
    assert similar(tests, 5) == pytest.approx(np.exp(-np.array(apart)))


def test_without_holes_it_is_the_mean() -> None:
    tests, truth = outcomes(0)
    weights = np.random.default_rng(0).gamma(2.0, 1.0, truth.shape[1])
    found = filled(tests, truth, weights)
    assert found.mean == pytest.approx(truth @ weights / weights.sum())
    assert found.error == pytest.approx(np.zeros(len(tests)))
    assert np.array_equal(found.values, truth)


def test_the_size_of_weights_does_not_matter() -> None:
    tests, truth = outcomes(2)
    table, weights = with_holes(tests, truth, 0.3), np.random.default_rng(0).gamma(2.0, 1.0, truth.shape[1])
    one, other = filled(tests, table, weights), filled(tests, table, weights * 1e-6)
    assert one.mean == pytest.approx(other.mean)
    assert one.error == pytest.approx(other.error)


def test_what_was_seen_is_kept() -> None:
    tests, truth = outcomes(1)
    table = with_holes(tests, truth, 0.3)
    found = filled(tests, table)
    seen = np.isfinite(table)
    assert np.array_equal(found.values[seen], truth[seen])
    assert (found.variance[seen] == 0).all()
    assert (found.variance[~seen] >= 0).all()


def test_errors_are_far_below_those_of_means_and_are_told() -> None:
    plain, ours, told, together = [], [], [], []
    for seed in range(12):
        tests, truth = outcomes(seed)
        table = with_holes(tests, truth, 0.3)
        found, right = filled(tests, table), truth.mean(axis=1)
        plain += ((np.nanmean(table, axis=1) - right) ** 2).tolist()
        ours += ((found.mean - right) ** 2).tolist()
        told += (found.error**2).tolist()
        together.append((found.mean - right).mean() ** 2)
    assert np.sqrt(np.mean(ours)) < 0.7 * np.sqrt(np.mean(plain))
    assert 0.7 < np.sqrt(np.mean(told) / np.mean(ours)) < 2.2
    assert np.mean(together) < 0.25 * np.mean(ours)  # errors of tests hardly go together


def test_every_test_has_an_order_of_all_blocks_and_alike_beginnings_share_it() -> None:
    space = Space(("a", "b", "c"))
    tests = space.tests()
    orders = block_orders(tests, 2030, Plan(block=100))
    assert (np.sort(orders, axis=1) == np.arange(21)).all()
    rows = {chain: row for row, chain in enumerate(tests.chains())}
    alike = [orders[rows[(0, 3), (1, severity)]] for severity in range(1, 6)]
    assert all(np.array_equal(order, alike[0]) for order in alike)
    apart = orders[rows[(0, 3), (1, 1)]][1:6], orders[rows[(0, 4), (1, 1)]][1:6]
    assert len(np.intersect1d(*apart)) <= 2
    assert np.array_equal(orders, block_orders(tests, 2030, Plan(block=100)))


def test_smoothing_takes_noise_away_and_says_how_much_is_left() -> None:
    tests = Space(("a", "b", "c")).tests(0, 2)
    s = tests.severities / 5
    log = np.log(0.95) - 0.4 * s.sum(axis=1) - 0.5 * s[:, 0] * s[:, 1]
    raw, ours, told = [], [], []
    for seed in range(5):
        noise = 0.02 * np.random.default_rng(seed).normal(size=len(log))
        found = smoothed(tests, log + noise, 0.02**2 * np.eye(len(log)), 5)
        raw.append(np.mean(noise**2))
        ours.append(np.mean((found.log - log) ** 2))
        told.append(np.mean((found.root**2).sum(axis=1)))
    assert np.mean(ours) < 0.4 * np.mean(raw)
    assert 0.5 < np.sqrt(np.mean(told) / np.mean(ours)) < 2


def test_interactions_of_two_orders_are_apart() -> None:
    """A∘B does harm, B∘A does not: with little noise neither is pulled to the other."""
    tests = Space(("a", "b"), ordered=True).tests(0, 2)
    log = -0.1 * tests.severity_sum / 5
    first = (tests.ranks[:, 0] == 1) & (tests.ranks[:, 1] == 2)
    log = log - np.where(first, 0.5 * tests.severities.prod(axis=1) / 25, 0)
    found = smoothed(tests, log, 1e-6 * np.eye(len(log)), 5)
    assert found.log == pytest.approx(log, abs=0.01)
