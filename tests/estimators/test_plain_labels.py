from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opmon.estimators.plain_labels import plain_labels
from opmon.estimators.tally import Tally

SIZE = 20_000


def of_parts(losses: list[np.ndarray]) -> Tally:
    """What draws of many from each part of a frame tell of its losses."""
    moments = [np.array([f(each) for each in losses]) for f in (np.mean, np.var)]
    sizes = np.array([len(each) for each in losses], dtype=float)
    none = np.zeros(len(losses))
    return Tally.of(sizes / sizes.sum(), none + 50, none + 1, (*moments, none, none))


def test_of_errors_it_is_the_sample_whose_interval_is_as_narrow() -> None:
    rng = np.random.default_rng(2)
    parts = [rng.exponential(scale, SIZE // 2) for scale in (1.0, 6.0)]
    frame, half_width = np.concatenate(parts), 0.25
    n = plain_labels(of_parts(parts), half_width, SIZE, 0.95)
    assert n is not None
    assert 1.96 * frame.std() * np.sqrt(1 / n - 1 / SIZE) == pytest.approx(half_width, rel=0.01)
    means = [rng.choice(frame, n, replace=False).mean() for _ in range(400)]
    assert np.std(means) * 1.96 == pytest.approx(half_width, rel=0.12)


def test_of_recall_it_is_the_sample_whose_recalls_spread_as_wide() -> None:
    rng = np.random.default_rng(3)
    found, missed = int(0.04 * SIZE), int(0.02 * SIZE)
    # parts: predicted positive, half of them truly; predicted negative, few of them truly
    sizes, positives = np.array([2 * found, SIZE - 2 * found]), np.array([found, missed])
    rate, share = positives / sizes, sizes / SIZE
    sums = np.array([found, found + missed]) / SIZE
    values = np.array([[0.0, 0, 1, 1], [0, 0, 0, 1]])
    tally = replace(Tally.of_shares(share, np.array([100.0, 100.0]), rate), values=values, sums=sums)
    n = plain_labels(tally, 0.06, SIZE, 0.95)
    assert n is not None
    truth = np.repeat([1, 0, 1, 0], [found, found, missed, SIZE - 2 * found - missed])
    said = np.repeat([1, 0], [2 * found, SIZE - 2 * found])
    recalls = []
    for _ in range(400):
        drawn = rng.choice(SIZE, n, replace=False)
        recalls.append((truth[drawn] * said[drawn]).sum() / truth[drawn].sum())
    assert np.std(recalls) * 1.96 == pytest.approx(0.06, rel=0.12)


def test_where_nothing_tells_how_losses_differ_nothing_is_said() -> None:
    none = np.zeros(1)
    assert plain_labels(Tally.of_shares(none + 1, none + 10, none + 0.1), 0.1, SIZE, 0.95) is None
    assert plain_labels(of_parts([np.arange(9.0)]), float("inf"), SIZE, 0.95) is None
