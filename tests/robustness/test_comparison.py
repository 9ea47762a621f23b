"""Two tomographies side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.robustness.comparison import compared
from opmon.robustness.outcomes import Outcomes
from opmon.robustness.result import Tomography
from opmon.robustness.space import Space

SPACE = Space(("zoom", "blur"), levels=2)
TESTS = SPACE.tests()
FACTS = {"relation": "as labelled", "perturbations": {"zoom": "{}", "blur": "{}"}}


def tomography(right: Any, names: Any, space: Space = SPACE, **changes: Any) -> Tomography:
    """Every test was run on every input: a row of ``right`` for each."""
    count = len(names)
    share, nothing = right.mean(axis=1), np.zeros(len(right))
    return Tomography(
        space=space,
        tests=space.tests(),
        share=share,
        error=nothing,
        shared=nothing,
        low=share,
        high=share,
        seen=np.full(len(right), count),
        inputs=count,
        effective_inputs=float(count),
        level=0.9,
        facts={**FACTS, **changes},
        outcomes=Outcomes.of(np.arange(len(right)), right, np.zeros(right.shape), np.asarray(names), None),
    )


def outcomes(limit: float, hard: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A model that is right on inputs that are not too hard, less so at each severity: 0.05 apart in expectation."""
    slack = rng.normal(size=(len(TESTS), len(hard))) * 0.02
    return (hard + 0.05 * TESTS.severity_sum[:, None] + slack < limit).astype(float)


def names(count: int, first: int = 0) -> np.ndarray:
    return np.array([f"input {i}" for i in range(first, first + count)])


def test_differences_on_the_same_inputs_are_covered_and_told_from_chance() -> None:
    covered, told, unpaired = [], [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        hard = rng.random(300)
        first, second = (tomography(outcomes(limit, hard, rng), names(300)) for limit in (0.9, 0.87))
        order = rng.permutation(300)
        second = replace(second, outcomes=Outcomes.of(range(9), second.outcomes.values[:, order], np.zeros((9, 300)),
                                                      second.outcomes.inputs[order], None))  # fmt: skip
        found = compared(first, second)
        assert found.paired
        covered.append(found.low <= -0.03 <= found.high)
        told.append(found.beyond_chance)
        apart = compared(first, replace(second, outcomes=None))
        assert not apart.paired
        assert apart.difference == found.difference
        unpaired.append(apart.beyond_chance)
    assert np.mean(covered) > 0.9 - 3 * np.sqrt(0.9 * 0.1 / 150)
    assert np.mean(told) > 0.9
    assert np.mean(unpaired) < 0.2


def test_inputs_that_are_not_the_same_are_not_paired() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(200)
    first = tomography(outcomes(0.9, hard, rng), names(200))
    second = tomography(outcomes(0.9, hard, rng), names(200, first=1))
    assert not compared(first, second).paired
    heavy = Outcomes.of(range(9), first.outcomes.values, np.zeros((9, 200)), names(200), rng.gamma(1, 1, 200))
    assert not compared(first, replace(first, outcomes=heavy)).paired
    assert compared(first, first).difference == compared(first, first).high == 0


def test_both_are_asked_about_the_same_tests_whatever_the_quality_is_measured_by() -> None:
    """Each model's layers have a scale of their own: the same outcomes differed beyond chance."""
    rng = np.random.default_rng(0)
    first = tomography(outcomes(0.9, rng.random(400), rng), names(400))
    mild, wild = (replace(first, quality=scale * TESTS.severity_sum) for scale in (0.1, 0.3))
    found = compared(mild, wild, "quality <= 0.3")
    assert (found.difference, found.first.value) == (0.0, found.second.value)


def test_tests_that_neither_has_run_are_judged_by_those_nearest() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(400)
    whole = [tomography(outcomes(limit, hard, rng), names(400)) for limit in (0.9, 0.8)]
    single = TESTS.order <= 1
    few = [
        replace(item, outcomes=Outcomes.of(np.flatnonzero(single), item.outcomes.values[single],
                                           np.zeros((int(single.sum()), 400)), names(400), None))
        for item in whole
    ]  # fmt: skip
    asked = "zoom == 1 and blur == 1"
    exact, near = compared(*whole, asked), compared(*few, asked)
    assert near.paired
    assert near.high - near.low == pytest.approx(exact.high - exact.low, rel=0.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"relation": "the same answer as unperturbed"}, "with labels .*or both without"),
        ({"tolerance": 0.5}, "within None of the truth in the first and 0.5 in the second"),
        ({"perturbations": {"zoom": '{"most": 9}', "blur": "{}"}}, "'zoom' is {} in the first"),
        ({"space": Space(("zoom", "blur"), levels=2, ordered=True)}, r"order of perturbations counts .*False and True"),
        ({"space": Space(("zoom", "blur"), levels=3)}, "number of severities: 2 and 3"),
        ({"space": Space(("zoom", "fog"), levels=2)}, "got zoom, blur and zoom, fog"),
    ],
)
def test_what_says_different_things_is_not_compared(changes: dict[str, Any], words: str) -> None:
    rng = np.random.default_rng(0)
    space = changes.get("space", SPACE)
    first = tomography(rng.integers(0, 2, (len(TESTS), 50)).astype(float), names(50))
    second = tomography(rng.integers(0, 2, (space.size, 50)).astype(float), names(50), **{"space": SPACE, **changes})
    with pytest.raises(InputError, match=words):
        compared(first, second)
