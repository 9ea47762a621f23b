from __future__ import annotations

import json
import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.decisions._bound import DELAY, Bound
from opmon.decisions._watch import PRIOR, Watch, recovery_growth
from opmon.errors import InputError

FLAT = np.zeros(len(PRIOR))


def test_all_weights_of_a_life_sum_to_alpha() -> None:
    bound = Bound(alpha=0.05)
    spent = math.fsum(bound.weight(judged, None) for judged in range(100_000))
    rest = 0.05 / (math.log(100_000 + DELAY) * 0.42)
    assert 0.05 - rest < spent < 0.05


def test_a_yearly_rate_is_spent_by_the_hour() -> None:
    bound = Bound.of(None, "1 per year")
    assert bound.weight(7, timedelta(hours=1)) == pytest.approx(1 / 8766)
    assert bound.weight(7, timedelta(days=400)) == 0.05, "a pause is no evidence"
    assert bound.weight(7, None) == 0


@pytest.mark.parametrize(("text", "yearly"), [("1 per year", 1.0), ("2 per month", 24.0), ("0.5/year", 0.5)])
def test_rates(text: str, yearly: float) -> None:
    assert Bound.of(None, text).per_year == yearly


@pytest.mark.parametrize("text", ["never", "0 per year", "1 per hour", "per year", "-1 per year"])
def test_a_rate_that_cannot_be(text: str) -> None:
    with pytest.raises(InputError, match="false_alarms"):
        Bound.of(None, text)


def test_either_alpha_or_a_rate() -> None:
    with pytest.raises(InputError, match="exclude"):
        Bound.of(0.1, "1 per year")


@pytest.mark.parametrize("alpha", [0, 1, 5, -0.1, True])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha"):
        Bound.of(alpha, None)


def test_evidence_without_growth_is_what_was_spent() -> None:
    bound, watch = Bound(alpha=0.05), Watch()
    for judged in range(10):
        watch = watch.after(FLAT, bound.weight(judged, None), 0.0, 20)
    assert watch.evidence == pytest.approx(math.fsum(bound.weight(judged, None) for judged in range(10)))
    assert not watch.alarmed


def test_an_alarm_holds_until_the_rounds_speak_for_recovery_and_then_begins_anew() -> None:
    watch = Watch().after(FLAT + 10.0, 0.01, 0.0, 20)
    assert watch.alarmed
    watch = watch.after(FLAT - 50.0, 0.01, 0.5, 20)
    assert watch.alarmed, "evidence that fades is no recovery"
    watch = watch.after(FLAT - 1.0, 0.01, 2.0, 20)
    watch = watch.after(FLAT - 1.0, 0.01, 2.0, 20)
    assert (watch.alarmed, watch.evidence, watch.judged) == (False, 0, 4)


def test_at_the_line_recovery_takes_the_rounds_asked_for() -> None:
    watch = Watch(alarmed=True)
    for _ in range(19):
        watch = watch.after(FLAT, 0.0, 0.0, 20)
    assert watch.alarmed


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.floats(1e-6, 0.05))
def test_kept_and_read_again_is_the_same(growths: list[float], weight: float) -> None:
    watch, setting = Watch(), {"threshold": 0.9}
    for growth in growths:
        watch = watch.after(FLAT + growth, weight, -growth, 20)
    details = json.loads(json.dumps({"setting": setting, "watch": watch.kept()}))
    again = Watch.of(details, setting)
    assert again.evidence == pytest.approx(watch.evidence, rel=1e-9)
    assert (again.alarmed, again.judged) == (watch.alarmed, watch.judged)


def test_another_setting_begins_anew() -> None:
    details = {"setting": {"threshold": 0.9}, "watch": Watch(judged=5).kept()}
    assert Watch.of(details, {"threshold": 0.8}).judged == 0


def test_false_alarms_of_simulated_lives_stay_under_alpha() -> None:
    """300 lives of 300 rounds of 20 coins exactly at the line; the share that alarms is at most 5 % within noise."""
    rng, line, bound = np.random.default_rng(1), 0.2, Bound(alpha=0.05)
    from opmon.decisions._betting import BETS

    up, down = np.log1p(BETS * (1 / line - 1)), np.log1p(-BETS)
    alarms = 0
    for _ in range(300):
        watch = Watch()
        for failed in rng.binomial(20, line, 300):
            watch = watch.after(failed * up + (20 - failed) * down, bound.weight(watch.judged, None), 0.0, 20)
            if watch.alarmed:
                alarms += 1
                break
    assert alarms <= 300 * 0.05 + 3 * math.sqrt(300 * 0.05 * 0.95)


def test_recovery_is_seen_below_the_line_and_not_above() -> None:
    good, bad = np.full(50, -0.1), np.full(50, 0.1)
    assert recovery_growth(good, np.ones(50)) > 0 > recovery_growth(bad, np.ones(50))


def test_one_good_round_of_few_draws_is_no_recovery() -> None:
    assert recovery_growth(np.full(5, -0.1), np.ones(5)) < math.log(20)
