from __future__ import annotations

import math
from dataclasses import replace

import pytest

from opmon.errors import InputError
from opmon.quantities import mean_squared_error
from opmon.reports.timeline import (
    RoundFacts,
    asked_metrics,
    final_metrics,
    input_metrics,
    provisional_metrics,
    revised_metrics,
    rolling_metrics,
)
from opmon.types import Estimate

FACTS = RoundFacts(received=1000, unscorable=2, duplicates=3, asked=50, returned=40, failures=4, skew=0.01, drift=0.25)


def estimate(*, provisional: bool = False, high: float = 0.95) -> Estimate:
    return Estimate(0.9, 0.85, high, 50, 1000, 0.8, "SRS, Wilson", provisional=provisional)


def test_every_number_has_a_key_of_its_own() -> None:
    metrics = (
        input_metrics(FACTS),
        asked_metrics(FACTS),
        provisional_metrics(estimate(provisional=True), FACTS),
        final_metrics(estimate(), FACTS),
        revised_metrics(estimate(), FACTS),
        rolling_metrics(estimate(), revised=False),
        rolling_metrics(estimate(), revised=True),
    )
    assert sum(map(len, metrics)) == len({key for some in metrics for key in some})


def test_a_final_estimate_has_every_metric() -> None:
    assert final_metrics(estimate(), FACTS) == {
        "accuracy/estimate": 0.9,
        "accuracy/low": 0.85,
        "accuracy/high": 0.95,
        "failures/exposed": 4,
        "failures/rate": 0.1,
        "labels/returned": 40,
        "labels/response": 0.8,
    }
    assert input_metrics(FACTS) | asked_metrics(FACTS) == {
        "inputs/received": 1000,
        "inputs/unscorable": 2,
        "inputs/unscorable_share": 0.002,
        "inputs/duplicates": 3,
        "labels/asked": 50,
        "serving/skew": 0.01,
        "drift/share": 0.25,
    }


def test_an_error_is_told_under_its_own_name_and_has_no_failures() -> None:
    found = replace(estimate(), quantity=mean_squared_error("days"))
    assert set(final_metrics(found, replace(FACTS, failures=None))) == {
        "mean_squared_error/estimate",
        "mean_squared_error/low",
        "mean_squared_error/high",
        "labels/returned",
        "labels/response",
    }


def test_what_is_not_known_is_left_out() -> None:
    assert set(input_metrics(RoundFacts(received=7))) == {
        "inputs/received",
        "inputs/unscorable",
        "inputs/unscorable_share",
        "inputs/duplicates",
    }


def test_an_infinite_bound_is_left_out() -> None:
    assert "accuracy/high" not in final_metrics(estimate(high=math.inf), FACTS)


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"received": -1}, "received"),
        ({"received": 1, "asked": 1, "returned": 2}, "2 of 1"),
        ({"received": 1, "asked": 1, "returned": 1, "failures": 2}, "2 failures in 1"),
        ({"received": 1, "skew": 1.5}, "skew"),
        ({"received": 1, "drift": math.nan}, "drift"),
    ],
)
def test_impossible_facts_are_refused(facts: dict[str, float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        RoundFacts(**facts)  # type: ignore[arg-type]
