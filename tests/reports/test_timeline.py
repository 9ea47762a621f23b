from __future__ import annotations

import math

import pytest

from opmon.errors import InputError
from opmon.reports.timeline import RoundFacts, timeline_metrics
from opmon.types import Estimate

FACTS = RoundFacts(received=1000, unscorable=2, duplicates=3, asked=50, returned=40, failures=4, skew=0.01, drift=0.25)


def estimate(*, provisional: bool = False, high: float = 0.95) -> Estimate:
    return Estimate(0.9, 0.85, high, 50, 1000, 0.8, "SRS, Wilson", provisional=provisional)


def test_a_final_round_has_every_metric() -> None:
    assert timeline_metrics(estimate(), FACTS) == {
        "accuracy/estimate": 0.9,
        "accuracy/low": 0.85,
        "accuracy/high": 0.95,
        "failures/exposed": 4,
        "failures/rate": 0.1,
        "inputs/received": 1000,
        "inputs/unscorable": 2,
        "inputs/unscorable_share": 0.002,
        "inputs/duplicates": 3,
        "labels/asked": 50,
        "labels/returned": 40,
        "labels/response": 0.8,
        "serving/skew": 0.01,
        "drift/share": 0.25,
    }


def test_a_provisional_value_is_not_an_estimate() -> None:
    metrics = timeline_metrics(estimate(provisional=True), FACTS)
    assert metrics["accuracy/provisional"] == 0.9
    assert "accuracy/estimate" not in metrics


def test_what_is_not_known_is_left_out() -> None:
    metrics = timeline_metrics(None, RoundFacts(received=7))
    assert metrics["inputs/received"] == 7
    assert not {"accuracy/estimate", "failures/rate", "labels/response", "serving/skew", "drift/share"} & set(metrics)


def test_an_infinite_bound_is_left_out() -> None:
    assert "accuracy/high" not in timeline_metrics(estimate(high=math.inf), FACTS)


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
