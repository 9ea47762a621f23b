"""What the rules promise over long lives: simulated round by round, with what each round says by itself."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from opmon.decisions._own import Own
from opmon.decisions._sequential import weigh
from opmon.decisions._watch import Growth, Watch
from opmon.decisions.accuracy_drop import AccuracyDrop
from opmon.decisions.accuracy_level import AccuracyLevel
from opmon.decisions.accuracy_mean import AccuracyMean
from opmon.decisions.case import OWN, Case
from opmon.decisions.draw_values import draw_values
from opmon.estimators import StratifiedEstimator
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.types import Draw, Estimate, Sample

SRS = SimpleRandomEstimator()

Rule = AccuracyLevel | AccuracyMean


def noise(lives: int, share: float = 0.05) -> float:
    """Three standard errors of a share."""
    return 3 * math.sqrt(share * (1 - share) / lives)


def sample_of(failed: int, n: int, N: int = 5000) -> Sample:
    draw = Draw("srs", N, np.arange(n), constants={"replacement": np.array(False)})
    return Sample(draw, (np.arange(n) < failed) * 1.0, "classification")


@functools.cache
def own(failed: int, n: int, line: float) -> dict[str, Any]:
    """What a round of ``n`` draws of which so many failed says by itself."""
    value = 1 - failed / n
    estimate = Estimate(value, max(value - 0.05, 0), min(value + 0.05, 1), n, 5000, 1.0, "srs")
    return {OWN: Own(weigh(draw_values(sample_of(failed, n), SRS), 1 - line), estimate, None).kept()}


def life(rule: Rule, rates: Iterable[float], n: int, rng: np.random.Generator) -> list[str]:
    """The states of a life with these failure rates."""
    before: Any = {}
    states: list[str] = []
    for failed in rng.binomial(n, np.clip(list(rates), 0, 1)):
        verdict = rule.restate(before, own(int(failed), n, rule.threshold))
        assert verdict is not None
        before = verdict.details
        states.append(verdict.state)
    return states


# the mean of many rounds against every round


def test_rounds_that_vary_around_a_good_mean_are_alarmed_by_the_level_rule_and_not_by_the_mean() -> None:
    """A mean two points above the line, rounds that vary by three points: what each rule promises is another thing."""
    rng = np.random.default_rng(7)
    rates = 0.06 + 0.03 * rng.standard_normal((16, 480))
    level = [life(AccuracyLevel(0.92), each, 200, rng) for each in rates]
    mean = [life(AccuracyMean(0.92, rounds=24), each, 200, rng) for each in rates]
    assert sum("alarm" in states for states in level) >= 2, "some rounds are below the line, and it says so"
    assert not any("alarm" in states for states in mean)


def test_false_alarms_of_the_mean_stay_under_alpha_where_every_window_is_at_the_line() -> None:
    rng, lives, windows = np.random.default_rng(8), 60, 20
    alarms = 0
    for _ in range(lives):
        rates = 0.03 * rng.standard_normal((windows, 12))
        rates += 0.08 - rates.mean(axis=1, keepdims=True)
        alarms += "alarm" in life(AccuracyMean(0.92, rounds=12, alpha=0.1), rates.ravel(), 100, rng)
    assert alarms / lives <= 0.1 + noise(lives, 0.1)


def test_a_mean_that_has_dropped_is_seen_at_the_end_of_a_window_and_ends_at_one() -> None:
    states = life(AccuracyMean(0.92, rounds=6), [0.05] * 12 + [0.2] * 12 + [0.03] * 24, 100, np.random.default_rng(9))
    assert states[:5] == ["unknown"] * 5
    assert "alarm" not in states[:17]
    assert "alarm" in states[17:24]
    assert states[-1] == "ok"
    changes = [k for k in range(1, len(states)) if states[k] != states[k - 1]]
    assert all((k + 1) % 6 == 0 for k in changes)


@pytest.mark.parametrize("rounds", [0, 1, 2.5, True])
def test_a_window_is_of_several_rounds(rounds: Any) -> None:
    with pytest.raises(ValueError, match="rounds must be"):
        AccuracyMean(0.9, rounds=rounds)


# recovery


@pytest.mark.parametrize("labels", [50, 100])
def test_a_model_that_stays_a_point_below_the_line_is_not_called_recovered(labels: int) -> None:
    """Of the rounds after the first alarm; the rule before this one called 73 % (100 labels), 84 % (50) ok."""
    rng, rule = np.random.default_rng(10), AccuracyLevel(0.92)
    after = ok = 0
    for _ in range(6):
        states = life(rule, [0.16] * 12 + [0.09] * 400, labels, rng)
        first = states.index("alarm")
        after, ok = after + len(states) - first, ok + states[first:].count("ok")
    assert ok / after < 0.05


def in_two_strata(rates: tuple[float, float], sizes: tuple[int, int], rng: np.random.Generator) -> Sample:
    """A round of 100 draws, half of them from each stratum: the smaller one is, the heavier the other's draws."""
    columns = {"stratum": np.repeat([0, 1], 50)}
    draw = Draw("ssrs", sum(sizes), np.arange(100), columns=columns, constants={"stratum_size": np.array(sizes)})
    return Sample(draw, rng.binomial(1, np.repeat(rates, 50)).astype(float), "classification")


def judged_in_windows_of_two(share: float, rates: tuple[float, float], rng: np.random.Generator) -> Iterator[str]:
    """The states of a mean of two rounds: of uneven weights in the first and every other one, each with its own rate of
    failures; after two windows that are far below the line."""
    rule, uneven = AccuracyMean(0.9, rounds=2), (int(1000 * share), int(1000 - 1000 * share))
    before: Any = {}
    for number in itertools.count():
        rate = 0.5 if number < 4 else rates[number % 2]
        sample = in_two_strata((rate, rate), (500, 500) if number % 2 else uneven, rng)
        estimate = Estimate(0.9, 0.85, 0.95, 100, 1000, 1.0, "ssrs")
        verdict = rule.judge(Case(number, [estimate], sample, StratifiedEstimator(), before=before))
        before = verdict.details
        yield verdict.state


@pytest.mark.parametrize("share", [0.7, 0.95])
def test_a_mean_that_stays_below_the_line_is_not_called_recovered_by_lighter_rounds(share: float) -> None:
    """Rounds of other weights than their neighbours', and of another accuracy: hard by day, easy by night."""
    rng, recovered = np.random.default_rng(13), 0
    for _ in range(40):
        states = list(itertools.islice(judged_in_windows_of_two(share, (0.19, 0.02), rng), 64))
        assert states[3] == "alarm"
        recovered += "ok" in states[4:]
    assert recovered <= 40 / 20 + 40 * noise(40)


@pytest.mark.parametrize("share", [0.7, 0.95])
def test_a_mean_that_is_above_the_line_again_is_called_recovered(share: float) -> None:
    rng, waited = np.random.default_rng(14), []
    for _ in range(20):
        states = list(itertools.islice(judged_in_windows_of_two(share, (0.04, 0.02), rng), 64))
        assert states[3] == "alarm"
        waited.append(states[4:].index("ok"))
    assert np.median(waited) <= 12


def test_after_a_false_recovery_the_next_alarm_is_not_slow() -> None:
    """The drop of ten points is seen about as soon as it was at the beginning, after a thousand rounds too."""
    rng, rule = np.random.default_rng(11), AccuracyLevel(0.92)
    setting = {"threshold": 0.92, "bound": "a false alarm has probability 5 % at most, for ever"}

    def waited(watch: Watch) -> float:
        found = []
        for _ in range(20):
            before: Any = {"setting": setting, "watch": watch.kept()}
            for failed in rng.binomial(50, 0.18, 60):
                before = rule.restate(before, own(int(failed), 50, 0.92)).details  # type: ignore[union-attr]
                if before["watch"]["alarmed"]:
                    break
            found.append(before["watch"]["judged"] - watch.judged)
        return float(np.mean(found))

    first, again = waited(Watch()), waited(Watch(judged=1000, since=1000, number=2))
    assert again <= 1.5 * first


def test_good_rounds_end_an_alarm() -> None:
    states = life(AccuracyLevel(0.92), [0.3] * 5 + [0.03] * 20, 100, np.random.default_rng(12))
    assert states[4] == "alarm"
    assert states[-1] == "ok"


# the drop from a baseline


def baseline(rates: float, N: int, n: int, rounds: int, rng: np.random.Generator) -> dict[str, float]:
    """What the drop rule takes for its baseline from rounds of ``N`` inputs of which ``n`` are labelled."""
    estimates = [
        SimpleRandomEstimator().estimate(sample_of(int(rng.hypergeometric(wrong, N - wrong, n)), n, N))
        for wrong in rng.binomial(N, rates, rounds + 1)
    ]
    case = Case(rounds + 1, estimates, sample_of(5, n, N), SimpleRandomEstimator())
    found: dict[str, float] = AccuracyDrop(0.05, rounds=rounds).judge(case).details["baseline"]
    return found


@pytest.mark.parametrize(("N", "n"), [(50, 50), (60, 50), (2000, 50)])
def test_a_baseline_speaks_about_later_frames_even_where_its_own_were_labelled_whole(N: int, n: int) -> None:
    """Its lower bound lies above the true accuracy in 2.5 % of all baselines, within noise."""
    rng, count = np.random.default_rng(13), 500
    above = sum(baseline(0.1, N, n, 3, rng)["low"] > 0.9 for _ in range(count))
    assert above / count <= 0.025 + noise(count, 0.025)


def test_a_census_without_a_failure_is_no_certain_baseline() -> None:
    estimate = Estimate(1.0, 1.0, 1.0, n=50, frame_size=50, response=1.0, method="srs")
    case = Case(2, [estimate, estimate], sample_of(0, 50, 50), SimpleRandomEstimator())
    found = AccuracyDrop(0.05, rounds=1).judge(case).details["baseline"]
    assert found["value"] == 1
    assert 0.9 < found["low"] < 0.98


def test_constant_accuracy_in_frames_labelled_whole_makes_few_false_alarms() -> None:
    """400 rounds of N = budget = 50 at 90 %: 24 % of lives alarmed when the baseline was taken for the whole truth."""
    rng, lives, alarms = np.random.default_rng(14), 100, 0
    rule = AccuracyDrop(0.005, rounds=3)
    for _ in range(lives):
        line = baseline(0.1, 50, 50, 3, rng)["low"] - 0.005
        watch = Watch()
        table = [weigh(draw_values(sample_of(failed, 50, 50), SRS), 1 - line) for failed in range(51)]
        for failed in rng.binomial(50, 0.1, 400):
            watch = watch.after(table[failed], rule_bound(rule), None, 20)
            if watch.alarmed:
                alarms += 1
                break
    assert alarms / lives <= 0.05 + noise(lives)


def rule_bound(rule: AccuracyDrop) -> Any:
    from opmon.decisions._bound import Bound

    return Bound.of(rule.alpha, rule.false_alarms).halved()


def test_growth_of_two_rounds_is_their_product() -> None:
    one = Growth.of(own(3, 50, 0.9)[OWN]["growth"])
    assert one.and_(one).alarm == pytest.approx(2 * one.alarm)
    assert one.and_(one).labels == 100
