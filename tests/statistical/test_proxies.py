"""Proxies of any quality leave estimates unbiased and intervals that cover; good ones make them narrower."""

from __future__ import annotations

import pytest
from scipy import stats

from opmon.problems import Problem
from tests.benchmarks.proxies import NOTHING, STRONG, TWO_PHASES, USELESS, study
from tests.benchmarks.proxies_measures import study_measure

REPETITIONS, OF_A_MEASURE = 60, 40


@pytest.mark.parametrize(
    ("design", "accuracy", "labels"),
    [("srs", "0.8", 200), ("srs", "0.95", 400), ("ssrs", "0.9", 200), ("gbs", "0.9", 200), ("adaptive", "0.9", 200)],
)
def test_a_proxy_narrows_where_it_is_good_and_harms_nowhere(design: str, accuracy: str, labels: int) -> None:
    lines = {line.proxy: line for line in study(design, accuracy, labels, REPETITIONS, size=5000)}
    least = stats.binom.ppf(0.0005, REPETITIONS, 0.93) / REPETITIONS
    assert [line for line in lines.values() if line.coverage < least] == []
    assert [line for line in lines.values() if abs(line.bias) > 4] == []
    assert [name for name in NOTHING if lines[name].width > USELESS] == []
    assert lines["says the reverse"].width <= USELESS
    assert lines["almost always right"].width < 0.75
    if design == "srs":
        assert [name for name in STRONG if lines[name].width > 0.8] == []
        assert lines["continuous 0.7"].width < lines[TWO_PHASES].width < 0.85
    else:
        assert max(lines[name].width for name in STRONG) < 0.95


def test_losses_are_assisted_too() -> None:
    lines = {line.proxy: line for line in study("srs", "losses", 200, REPETITIONS, size=5000)}
    assert [line for line in lines.values() if abs(line.bias) > 4] == []
    assert lines["continuous 0.7"].width < 0.8
    assert [name for name in NOTHING if lines[name].width > USELESS] == []


@pytest.mark.parametrize(
    ("problem", "name", "keys", "bar"),
    [
        ("classification", "f1", {"class": "b"}, 0.8),
        ("classification", "recall", {"class": "b"}, 0.8),
        ("classification", "brier", {}, 0.8),
        ("classification", "auc", {"class": "b"}, 0.8),
        ("regression", "mean_absolute_error", {}, 0.8),
        ("regression", "root_mean_squared_error", {}, 0.8),
        ("regression", "r_squared", {}, 0.85),
        ("multilabel", "hamming_loss", {}, 0.8),
        ("judged", "mean_score", {}, 0.8),
    ],
)
def test_every_measure_is_assisted(problem: Problem, name: str, keys: dict[str, object], bar: float) -> None:
    """The bar is that of a correlation of 0.7 with the measure's (linearised) value."""
    lines = {line.proxy: line for line in study_measure("srs", problem, name, keys, OF_A_MEASURE, size=4000)}
    least = stats.binom.ppf(0.0005, OF_A_MEASURE, 0.93) / OF_A_MEASURE
    assert [line for line in lines.values() if line.coverage < least] == []
    assert [line for line in lines.values() if abs(line.bias) > 4 / OF_A_MEASURE**0.5] == []
    assert lines["0"].width <= USELESS
    assert lines["0.9"].width < lines["0.7"].width <= bar
    assert lines["0.7"].width < lines["half missing 0.7"].width < 1.0
    assert lines["0.7"].error < 0.9
