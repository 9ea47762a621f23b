from __future__ import annotations

import itertools

import numpy as np
import pytest

from opmon.estimators.gbs import GradientBasedEstimator
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.estimators.stratified import StratifiedEstimator
from opmon.types import Draw, Sample


def stratified(strata: list[int], sizes: list[int], outcomes: list[float]) -> Sample:
    draw = Draw(
        "ssrs",
        sum(sizes),
        np.arange(len(strata)),
        {"stratum": np.array(strata)},
        {"stratum_size": np.array(sizes)},
    )
    return Sample(draw, np.array(outcomes))


def test_stratified_worked_by_hand() -> None:
    found = StratifiedEstimator().estimate(stratified([0, 0, 1, 1], [60, 40], [1, 0, 1, 1]))
    assert found.value == pytest.approx(1 - (0.6 * 0.5 + 0.4 * 1.0))
    # 0.6² · (1 − 2/60) · 0.5/2 + 0
    assert found.standard_error == pytest.approx(np.sqrt(0.36 * (1 - 2 / 60) * 0.25))


def test_stratified_with_one_stratum_is_simple_random_sampling() -> None:
    y = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    one = StratifiedEstimator().estimate(stratified([0] * 7, [50], y))
    draw = Draw("srs", 50, np.arange(7), constants={"replacement": np.array(False)})
    other = SimpleRandomEstimator().estimate(Sample(draw, np.array(y)))
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error)


def test_stratified_census_of_every_stratum_is_exact() -> None:
    found = StratifiedEstimator().estimate(stratified([0, 0, 1, 1, 1], [2, 3], [1, 0, 1, 1, 0]))
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high) == pytest.approx(0.4)


def test_stratified_a_stratum_drawn_whole_adds_no_width() -> None:
    partly = StratifiedEstimator().estimate(stratified([0] * 10 + [1] * 10, [500, 20], [0.0] * 15 + [1.0] * 5))
    whole = StratifiedEstimator().estimate(stratified([0] * 10 + [1] * 10, [500, 10], [0.0] * 15 + [1.0] * 5))
    assert whole.half_width < partly.half_width


def test_stratified_a_silent_stratum_is_not_forgotten_by_the_interval() -> None:
    found = StratifiedEstimator().estimate(stratified([0] * 30 + [1] * 2, [500, 500], [0.0] * 30 + [np.nan] * 2))
    assert found.value == 1.0
    assert found.low < 0.5


def test_gbs_is_exactly_unbiased_though_allocation_follows_the_labels() -> None:
    """Two strata of three; wave 1 takes one of each, wave 2 gives its two free draws to the stratum that failed."""
    y = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    values, chances = [], []
    for first in itertools.permutations(range(3)):
        for second in itertools.permutations(range(3, 6)):
            more_in_first = y[first[0]] >= y[second[0]]
            extra = (2, 1) if more_in_first else (1, 2)
            positions = [first[0], second[0], *first[1 : 1 + extra[0]], *second[1 : 1 + extra[1]]]
            strata = [0, 1] + [0] * extra[0] + [1] * extra[1]
            draw = Draw(
                "gbs",
                6,
                np.array(positions),
                {"stratum": np.array(strata), "wave": np.array([0, 0, 1, 1, 1])},
                {"stratum_size": np.array([3, 3])},
            )
            values.append(GradientBasedEstimator().estimate(Sample(draw, y[positions])).value)
            chances.append(1 / 36)
    assert float(np.dot(values, chances)) == pytest.approx(1 - y.mean())
    assert np.std(values) > 0


def test_gbs_with_one_wave_is_the_stratified_mean() -> None:
    plain = stratified([0, 0, 1, 1], [60, 40], [1, 0, 1, 0])
    columns = {"stratum": plain.draw.columns["stratum"], "wave": np.zeros(4, dtype=np.int64)}
    draw = Draw("gbs", 100, plain.draw.positions, columns, plain.draw.constants)
    one, other = GradientBasedEstimator().estimate(Sample(draw, plain.outcomes)), StratifiedEstimator().estimate(plain)
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error, rel=0.02)
