from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmon.samplers._strata import Strata, proportional
from opmon.samplers.ssrs import Stratified
from opmon.types import Frame


def sum_of_squares(values: np.ndarray, cuts: tuple[int, ...]) -> float:
    parts = np.split(np.sort(values), cuts)
    return float(sum(((part - part.mean()) ** 2).sum() for part in parts))


@given(
    values=st.lists(st.integers(0, 4000), min_size=2, max_size=11, unique=True),
    count=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_kmeans_is_the_best_of_all_partitions(values: list[int], count: int) -> None:
    """On values a bin apart the dynamic programme must find what trying every partition finds."""
    chi = np.array(values, dtype=np.float64)
    strata = Strata.by_kmeans(chi, count)
    found = float((strata.spreads**2 * strata.sizes).sum())
    every = itertools.combinations(range(1, len(chi)), min(count, len(chi)) - 1)
    best = min(sum_of_squares(chi, cuts) for cuts in every)
    assert found == pytest.approx(best, rel=1e-6, abs=len(values) * (4000 / 4096) ** 2)


def test_kmeans_members_are_a_partition_in_ascending_order() -> None:
    chi = np.random.default_rng(1).random(5000) ** 3
    strata = Strata.by_kmeans(chi, 10)
    assert sorted(strata.members.tolist()) == list(range(5000))
    parts = np.split(strata.members, np.cumsum(strata.sizes)[:-1])
    assert all(chi[a].max() <= chi[b].min() + 1 / 4096 for a, b in itertools.pairwise(parts))
    assert strata.sums == pytest.approx([chi[part].sum() for part in parts])
    assert strata.spreads == pytest.approx([chi[part].std() for part in parts])


@pytest.mark.parametrize("outlier", [1e3, 1e4, 1e8, -1e5])
def test_kmeans_is_as_good_with_a_long_tail(outlier: float) -> None:
    """One far value must not make the bins so wide that all the others share one: the body still gets nine strata."""
    body = np.random.default_rng(4).random(5000)
    chi = np.r_[body, outlier] - min(outlier, 0)
    parts = np.split(chi[(strata := Strata.by_kmeans(chi, 10)).members], np.cumsum(strata.sizes)[:-1])
    best = np.concatenate([part - part.mean() for part in np.array_split(np.sort(body), 9)])
    assert len(parts) == 10
    assert sum(((part - part.mean()) ** 2).sum() for part in parts) <= 1.01 * (best**2).sum()


def test_kmeans_of_few_values_gives_as_many_strata() -> None:
    assert Strata.by_kmeans(np.array([0.1, 0.9, 0.9, 0.1, 0.1]), 10).sizes.tolist() == [3, 2]


@given(
    shares=st.lists(st.floats(0, 1e6), min_size=1, max_size=12),
    most=st.lists(st.integers(1, 50), min_size=12, max_size=12),
    total=st.integers(1, 600),
    least=st.integers(0, 1),
)
@settings(max_examples=200, deadline=None)
def test_proportional_keeps_its_limits(shares: list[float], most: list[int], total: int, least: int) -> None:
    limits = np.array(most[: len(shares)])
    counts = proportional(np.array(shares), total, limits, least)
    assert (counts <= limits).all()
    assert (counts >= np.minimum(least, limits)).all()
    assert counts.sum() == min(max(total, int(np.minimum(least, limits).sum())), int(limits.sum()))


def test_proportional_is_exact_where_nothing_binds() -> None:
    assert proportional(np.array([1.0, 2.0, 7.0]), 20, np.array([100, 100, 100])).tolist() == [2, 4, 14]


def test_ssrs_allocates_by_size_times_spread() -> None:
    rng = np.random.default_rng(3)
    chi = np.r_[rng.uniform(0, 0.1, 900), rng.uniform(0.6, 1.0, 100)]
    draw = Stratified(strata=2).draw(Frame({"confidence": chi}), 65, rng)
    # N_h sd_h: 900 · 0.1/√12 and 100 · 0.4/√12, that is 9 to 4
    assert np.bincount(draw.columns["stratum"]).tolist() == [45, 20]
