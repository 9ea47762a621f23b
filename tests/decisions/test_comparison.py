from __future__ import annotations

import re

import numpy as np
import pytest

from opmon.decisions.comparison import Comparison, Paired, compare_versions
from opmon.errors import InputError
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Sample


def rounds(count: int, first: float, second: float, both: float = 0.05, seed: int = 0) -> list[Paired]:
    """Both wrong on a share ``both``, one alone on the rest of its failures."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        u = rng.random(100)
        a = (u < first) * 1.0
        b = ((u < both) | ((u >= first) & (u < first + second - both))) * 1.0
        made.append(Paired(Sample(Draw("srs", 1000, np.arange(100)), a), b, SimpleRandomEstimator()))
    return made


def test_the_better_version_wins_with_few_disagreements() -> None:
    found = compare_versions(rounds(8, 0.15, 0.06))
    assert found.winner == "second"
    assert found.low < 0.09 < found.high
    assert found.disagreements < found.labels / 5
    assert "v4 is better" in found.words("v3", "v4")


def test_it_is_the_same_the_other_way_round() -> None:
    found = compare_versions(rounds(8, 0.06, 0.15))
    assert found.winner == "first"
    assert found.difference < 0


def test_equal_versions_are_seldom_told_apart() -> None:
    decided = [compare_versions(rounds(20, 0.1, 0.1, seed=seed)).winner for seed in range(100)]
    assert sum(winner is not None for winner in decided) <= 5 + 3 * 2.2


def test_the_difference_of_two_accuracies_is_told_in_points() -> None:
    words = compare_versions(rounds(8, 0.15, 0.06)).words("v3", "v4")
    assert re.match(r"v4 is [\d.]+ points more accurate than v3 \(95 % interval \+[\d.]+ to \+[\d.]+ points\)", words)


def test_undecided_says_what_is_missing() -> None:
    words = compare_versions(rounds(1, 0.1, 0.09)).words("v3", "v4")
    assert "Not decided" in words
    assert "% of what it takes" in words


def test_a_decision_stays_whatever_comes_later() -> None:
    better, worse = rounds(8, 0.15, 0.05), rounds(8, 0.05, 0.15)
    assert compare_versions([*better, *worse]).winner == "second"


def test_draws_without_answers_count_for_neither() -> None:
    entry = rounds(1, 0.15, 0.05)[0]
    silent = Paired(entry.first, np.where(np.arange(100) < 50, np.nan, entry.second), entry.design)
    assert compare_versions([silent]).labels == 50


def test_without_rounds_there_is_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="label"):
        compare_versions([])
    with pytest.raises(InputError, match="alpha"):
        compare_versions(rounds(1, 0.1, 0.1), alpha=5)


def test_words_of_an_even_comparison() -> None:
    even = Comparison(None, 0.0, -0.1, 0.1, 10, 0, 1, {"first": 0.0, "second": 0.0}, 0.05)
    assert "v4 is as accurate as v3 (95 % interval −" in even.words("v3", "v4")
