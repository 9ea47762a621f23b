from __future__ import annotations

import numpy as np
import pytest

from opmon.stages.failing import failing
from opmon.store.plans import RoundPlan
from opmon.types import Draw, Sample


def failed(outcomes: list[float], **plan: object) -> list[int]:
    made = RoundPlan(**plan)  # type: ignore[arg-type]
    draw = Draw("srs", 100, np.arange(len(outcomes)))
    return sorted(failing(Sample(draw, np.array(outcomes), made.problem), made))


def test_the_largest_tenth_of_the_errors_without_a_tolerance() -> None:
    assert failed([float(k) for k in range(20)], problem="regression") == [18, 19]
    assert failed([0.0] * 19 + [np.nan], problem="regression") == []
    assert failed([0.0] * 19 + [4.0], problem="regression") == [19]


def test_largest_errors_that_are_all_as_large_are_not_left_out() -> None:
    """Whole numbers are often off by one, and by no more."""
    assert failed([0.0] * 10 + [1.0] * 10, problem="regression") == list(range(10, 20))
    assert failed([1.0] * 10 + [4.0] * 10, problem="regression") == list(range(10, 20))
    assert failed([1.0] * 10 + [4.0], problem="regression") == [10]


def test_errors_beyond_the_tolerance_are_failures_and_those_at_it_are_none() -> None:
    assert failed([0.0, 1.44, 1.45, 9.0, np.nan], problem="regression", tolerance=1.2) == [2, 3]
    at = [(5000.3 - 5000.2) ** 2, (float(np.float32(1.1)) - 1.0) ** 2]  # a little more than a tenth, as it is stored
    assert failed([*at, 0.1001**2], problem="regression", tolerance=0.1) == [2]


@pytest.mark.parametrize(("tolerance", "found"), [(None, [3]), (0.3, [2, 3]), (0.9, [])])
def test_low_scores_are_failures(tolerance: float | None, found: list[int]) -> None:
    assert failed([0.0, 0.3, 0.5, 0.75], problem="judged", scale="score", tolerance=tolerance) == found


@pytest.mark.parametrize("problem", ["classification", "multilabel", "judged"])
def test_whatever_is_wrong_is_a_failure(problem: str) -> None:
    assert failed([0.0, 1.0, np.nan, 1.0], problem=problem) == [1, 3]
