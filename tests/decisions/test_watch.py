from __future__ import annotations

import json
import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.decisions._betting import BETS, RECOVERY_BETS, recovery_growth
from opmon.decisions._bound import DELAY, Bound
from opmon.decisions._watch import Growth, Watch
from opmon.errors import InputError

LIFE = Bound(alpha=0.05)


def growth(alarm: float = 0.0, recovery: float = 0.0) -> Growth:
    return Growth(np.full(len(BETS), alarm), np.full(len(RECOVERY_BETS), recovery), 20)


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


def test_the_parts_of_all_watches_sum_to_alpha() -> None:
    parts = [LIFE.of_watch(number).alpha or 0 for number in range(1, 2000)]
    assert math.fsum(parts) == pytest.approx(0.05, rel=1e-3)
    assert parts == sorted(parts, reverse=True)
    yearly = Bound.of(None, "1 per year")
    assert yearly.of_watch(7) == yearly


def test_evidence_without_growth_is_what_was_spent() -> None:
    watch, first = Watch(), LIFE.of_watch(1)
    for _ in range(10):
        watch = watch.after(growth(), LIFE, None, 20)
    assert watch.evidence == pytest.approx(math.fsum(first.weight(judged, None) for judged in range(10)))
    assert not watch.alarmed


def test_an_alarm_holds_until_the_rounds_speak_for_recovery_and_then_begins_anew() -> None:
    watch = Watch().after(growth(10.0), LIFE, None, 20)
    assert (watch.alarmed, watch.since) == (True, 1)
    watch = watch.after(growth(-50.0, recovery=0.5), LIFE, None, 20)
    assert watch.alarmed, "evidence that fades is no recovery"
    for _ in range(3):
        watch = watch.after(growth(-1.0, recovery=2.0), LIFE, None, 20)
    assert (watch.alarmed, watch.evidence, watch.recovery) == (False, 0, 0)
    assert (watch.judged, watch.since, watch.number) == (5, 5, 2)


def test_a_second_alarm_is_nearly_as_quick_as_the_first_however_late_it_comes() -> None:
    """The weight that a new watch begins with does not depend on how long life was."""
    first = Watch().after(growth(), LIFE, None, 20).evidence
    late = Watch(judged=5000).after(growth(), LIFE, None, 20).evidence
    again = Watch(judged=5000, since=5000, number=2).after(growth(), LIFE, None, 20).evidence
    assert late < first / 1000
    assert again == pytest.approx(first / 6)


def test_at_the_line_recovery_never_comes() -> None:
    watch = Watch(alarmed=True)
    for _ in range(2000):
        watch = watch.after(growth(), LIFE, None, 20)
    assert watch.alarmed
    assert watch.recovery < 1 / 20


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_kept_and_read_again_is_the_same(growths: list[float]) -> None:
    watch, setting = Watch(), {"threshold": 0.9}
    for each in growths:
        own = growth(each, -each)
        assert Growth.of(json.loads(json.dumps(own.kept()))).kept() == own.kept()
        watch = watch.after(own, LIFE, None, 20)
    details = json.loads(json.dumps({"setting": setting, "watch": watch.kept()}))
    again = Watch.of(details, setting)
    assert (again.evidence, again.recovery) == pytest.approx((watch.evidence, watch.recovery), rel=1e-9)
    assert (again.alarmed, again.judged, again.since) == (watch.alarmed, watch.judged, watch.since)


def test_what_an_older_opmon_kept_is_read() -> None:
    old = {"capital": [0.1] * 7, "judged": 3, "alarmed": True, "recovery": 7.5}
    watch = Watch.of({"setting": {}, "watch": old}, {})
    assert (watch.judged, watch.alarmed, watch.recovery) == (3, True, 0)


def test_another_setting_begins_anew() -> None:
    details = {"setting": {"threshold": 0.9}, "watch": Watch(judged=5).kept()}
    assert Watch.of(details, {"threshold": 0.8}).judged == 0


def walk(alarmed: bool, line: float, rate: float, rounds: int, rng: np.random.Generator) -> list[Watch]:
    """A life of rounds of 50 draws that fail at ``rate``."""
    up, down = np.log1p(BETS * (1 / line - 1)), np.log1p(-BETS)
    back = [recovery_growth(np.array([loss - line]), np.ones(1), np.array([1 - line])) for loss in (1.0, 0.0)]
    watch, found = Watch(alarmed=alarmed), []
    for failed in rng.binomial(50, rate, rounds):
        own = Growth(failed * up + (50 - failed) * down, failed * back[0] + (50 - failed) * back[1], 50)
        watch = watch.after(own, LIFE, None, 20)
        found.append(watch)
    return found


def test_false_alarms_of_simulated_lives_stay_under_alpha() -> None:
    """Lives of 300 rounds exactly at the line; the share that alarms is at most 5 % within noise."""
    rng, lives = np.random.default_rng(1), 150
    alarms = sum(any(watch.alarmed for watch in walk(False, 0.2, 0.2, 300, rng)) for _ in range(lives))
    assert alarms <= lives * 0.05 + 3 * math.sqrt(lives * 0.05 * 0.95)


@pytest.mark.parametrize("behind", [0.0, 0.01])
def test_a_model_that_stays_at_the_line_or_behind_it_is_not_called_recovered(behind: float) -> None:
    """Alarmed lives of 400 rounds; 1/20 of them at most ever recover, within noise."""
    rng, lives = np.random.default_rng(2), 100
    recovered = sum(walk(True, 0.1, 0.1 + behind, 400, rng)[-1].number > 1 for _ in range(lives))
    assert recovered <= lives / 20 + 3 * math.sqrt(lives * 0.05 * 0.95)


def test_a_model_that_is_right_again_recovers() -> None:
    rng = np.random.default_rng(3)
    waited = [next(i for i, watch in enumerate(walk(True, 0.1, 0.04, 200, rng)) if watch.number > 1) for _ in range(50)]
    assert np.median(waited) < 15


def test_recovery_is_seen_below_the_line_and_not_above() -> None:
    room = np.full(50, 0.9)
    good, bad = np.full(50, -0.1), np.full(50, 0.1)
    assert recovery_growth(good, np.ones(50), room).max() > 0 > recovery_growth(bad, np.ones(50), room).max()


def test_where_losses_have_no_bound_there_is_no_evidence_of_recovery() -> None:
    assert not recovery_growth(np.full(500, -0.1), np.ones(500), None).any()
    assert not recovery_growth(np.full(500, -0.1), np.ones(500), np.full(500, np.inf)).any()


def test_one_good_round_of_few_draws_is_no_recovery() -> None:
    assert recovery_growth(np.full(5, -0.1), np.ones(5), np.full(5, 0.9)).max() < math.log(20)
