from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.abc import Rule
from opmon.decisions.accuracy_below import AccuracyBelow
from opmon.errors import InputError
from opmon.plugins import make
from opmon.types import Estimate


def estimate(low: float, high: float, value: float | None = None, n: int = 200, **more) -> Estimate:
    value = (low + high) / 2 if value is None else value
    return Estimate(value, low, high, n=n, frame_size=5000, response=more.pop("response", 1.0), method="srs", **more)


GOOD, BAD, UNSURE = estimate(0.93, 0.97), estimate(0.80, 0.90), estimate(0.88, 0.94)


def test_is_a_rule_behind_the_entry_point() -> None:
    assert isinstance(make("rule", "accuracy_below", {"threshold": 0.9}), Rule)


@pytest.mark.parametrize(
    ("rounds", "state"),
    [
        ([BAD, BAD, GOOD], "alarm"),
        ([BAD, BAD, GOOD, GOOD], "ok"),
        ([BAD, BAD, GOOD, BAD, GOOD], "alarm"),
        ([BAD, GOOD], "ok"),
    ],
)
def test_an_alarm_ends_after_the_rounds_asked_for(rounds: list[Estimate], state: str) -> None:
    assert AccuracyBelow(0.92, patience=2, recovery=2).decide(rounds).state == state


def test_unknown_without_estimates() -> None:
    verdict = AccuracyBelow(0.92).decide([])
    assert verdict.state == "unknown"
    assert verdict.value is None
    assert "no round" in verdict.message


def test_unknown_where_the_last_round_has_no_answers() -> None:
    assert AccuracyBelow(0.92).decide([BAD, estimate(0.0, 1.0, n=0)]).state == "unknown"


@pytest.mark.parametrize(("rounds", "state"), [([GOOD], "ok"), ([BAD], "alarm"), ([UNSURE], "ok"), ([BAD, GOOD], "ok")])
def test_the_upper_end_decides(rounds: list[Estimate], state: str) -> None:
    assert AccuracyBelow(0.92).decide(rounds).state == state


def test_the_line_itself_is_not_below() -> None:
    assert AccuracyBelow(0.90).decide([BAD]).state == "ok"


def test_the_estimate_decides_where_asked() -> None:
    assert AccuracyBelow(0.92, certainty="estimate").decide([UNSURE]).state == "alarm"


@pytest.mark.parametrize(
    ("rounds", "state"),
    [
        ([BAD], "ok"),
        ([BAD, BAD], "alarm"),
        ([BAD, GOOD, BAD], "ok"),
        ([GOOD, BAD, BAD, BAD], "alarm"),
        ([BAD, BAD, GOOD], "ok"),
    ],
)
def test_patience_counts_rounds_running(rounds: list[Estimate], state: str) -> None:
    assert AccuracyBelow(0.92, patience=2).decide(rounds).state == state


def test_a_round_without_answers_breaks_the_run() -> None:
    assert AccuracyBelow(0.92, patience=2).decide([BAD, estimate(0.0, 0.5, n=0), BAD]).state == "ok"


def test_the_message_tells_evidence_and_distance() -> None:
    message = AccuracyBelow(0.92).decide([BAD]).message
    assert "accuracy 85.0 % (95 % interval 80.0 % to 90.0 %, from 200 draws of 5,000 inputs, 100 % answered)" in message
    assert "the interval's upper end is 2 points below the line of 92 %, 1 round running" in message


def test_the_message_tells_doubt_and_missing_answers() -> None:
    unsure = estimate(0.86, 0.94, provisional=True, response=0.4)
    message = AccuracyBelow(0.92).decide([unsure]).message
    assert "40 % answered), provisional" in message
    assert "more labels are needed" in message
    assert "an alarm takes 3" in AccuracyBelow(0.92, patience=3).decide([BAD]).message


def test_details_are_json() -> None:
    details = json.loads(json.dumps(dict(AccuracyBelow(0.92).decide([BAD]).details)))
    assert details["rounds_below"] == 1
    assert details["distance"] == pytest.approx(-0.07)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"threshold": 92}, "did you mean 0.92"),
        ({"threshold": float("nan")}, "at most 1"),
        ({"threshold": "0.9"}, "must be a number"),
        ({"threshold": True}, "must be a number"),
        ({"threshold": 0.9, "patience": 0}, "patience must be"),
        ({"threshold": 0.9, "patience": 1.5}, "patience must be"),
        ({"threshold": 0.9, "certainty": "sure"}, "'interval' or 'estimate'"),
        ({"threshold": 0.9, "name": " "}, "name must be"),
    ],
)
def test_wrong_parameters(arguments, words: str) -> None:
    with pytest.raises(InputError, match=words):
        AccuracyBelow(**arguments)


def test_a_negative_line_is_fine_for_regression() -> None:
    assert AccuracyBelow(-0.5).decide([estimate(-1.0, -0.6)]).state == "alarm"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1), st.floats(0, 1), st.integers(1, 4))
def test_only_the_last_rounds_matter(ends, threshold: float, patience: int) -> None:
    rounds = [estimate(min(pair), max(pair)) for pair in ends]
    rule = AccuracyBelow(threshold, patience=patience)
    assert rule.decide(rounds).state == rule.decide(rounds[-patience:]).state


@given(st.floats(0, 1), st.floats(0, 0.2), st.floats(0, 1), st.floats(0, 0.5))
def test_a_higher_line_never_ends_an_alarm(low: float, width: float, threshold: float, more: float) -> None:
    rounds = [estimate(low, low + width)]
    if AccuracyBelow(threshold).decide(rounds).state == "alarm" and threshold + more <= 1:
        assert AccuracyBelow(threshold + more).decide(rounds).state == "alarm"


@pytest.mark.parametrize(
    ("patience", "rounds", "claimed"),
    [
        (1, 24, 0.46),
        (1, 168, 0.99),
        (2, 24, 0.014),
        (2, 168, 0.10),
        (2, 8760, 0.995),
        (3, 168, 0.0026),
        (3, 8760, 0.12),
    ],
)
def test_the_false_alarm_table_of_the_docstring(patience: int, rounds: int, claimed: float) -> None:
    q = 0.025
    running = np.zeros(patience + 1)  # the probability of each length of the current run; the last one absorbs
    running[0] = 1.0
    for _ in range(rounds):
        below = q * running[:-1]
        running = np.concatenate([[running[:-1].sum() - below.sum()], below[:-1], [running[-1] + below[-1]]])
    assert running[-1] == pytest.approx(claimed, rel=0.05)
    assert f"{claimed:g}" in (AccuracyBelow.__doc__ or "")


def test_the_rule_does_alarm_falsely_at_that_rate() -> None:
    rng = np.random.default_rng(5)
    lives, rounds, truth, error = 400, 24, 0.9, 0.02
    alarms = 0
    for values in rng.normal(truth, error, size=(lives, rounds)):
        made = [estimate(v - 1.959964 * error, v + 1.959964 * error, v) for v in values]
        rule = AccuracyBelow(threshold=truth)
        alarms += any(rule.decide(made[: k + 1]).state == "alarm" for k in range(rounds))
    assert abs(alarms / lives - 0.455) < 4 * np.sqrt(0.455 * 0.545 / lives)


def test_the_rule_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        AccuracyBelow(0.9).threshold = 0.1  # type: ignore[misc]
