"""The rules, one round after another, with their own details handed back as the monitor does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from opmon.abc import Rule
from opmon.decisions.accuracy_behind import AccuracyBehind
from opmon.decisions.accuracy_below import AccuracyBelow
from opmon.decisions.accuracy_drop import AccuracyDrop
from opmon.decisions.accuracy_level import AccuracyLevel
from opmon.decisions.accuracy_slices import AccuracySlices
from opmon.decisions.case import Case
from opmon.decisions.completeness import Completeness
from opmon.decisions.drift_level import DriftLevel
from opmon.decisions.robustness_level import RobustnessLevel
from opmon.errors import InputError
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.plugins import make
from opmon.quantities import MEAN_SCORE
from opmon.testing.designs import design_of
from opmon.types import Draw, Estimate, Sample, Verdict

N, BUDGET = 2000, 100


def sample_of(outcomes: np.ndarray) -> Sample:
    draw = Draw("srs", N, np.arange(len(outcomes)), constants={"replacement": np.array(False)})
    return Sample(draw, outcomes.astype(np.float64))


def cases(losses: Sequence[float], seed: int = 0, **more: Any) -> Iterator[Case]:
    """Rounds of 100 draws with these failure rates."""
    rng = np.random.default_rng(seed)
    estimates: list[Estimate] = []
    for number, loss in enumerate(losses, start=1):
        sample = sample_of(rng.random(BUDGET) < loss)
        estimates.append(SimpleRandomEstimator().estimate(sample))
        yield Case(number, tuple(estimates), sample, design_of(sample), elapsed=timedelta(hours=1), **more)


def judged(rule: Rule, rounds: Iterator[Case]) -> list[Verdict]:
    found: list[Verdict] = []
    for case in rounds:
        before = json.loads(json.dumps(dict(found[-1].details))) if found else {}
        found.append(rule.judge(replace(case, before=before)))
    return found


RULES: dict[str, dict[str, Any]] = {
    "accuracy_below": {"threshold": 0.9},
    "accuracy_level": {"threshold": 0.9},
    "accuracy_mean": {"threshold": 0.9, "rounds": 2},
    "accuracy_drop": {"drop": 0.05},
    "accuracy_slices": {"threshold": 0.9},
    "accuracy_behind": {"rival": "models:/digits/2"},
    "completeness": {},
    "drift_level": {},
    "robustness_level": {"threshold": 0.5},
}


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_is_behind_an_entry_point_and_its_verdicts_are_json(kind: str) -> None:
    rule = make("rule", kind, RULES[kind])
    assert isinstance(rule, Rule)
    for verdict in judged(rule, cases([0.1] * 5)):
        assert verdict.message
        assert json.dumps(dict(verdict.details))


@pytest.mark.parametrize("kind", RULES)
def test_a_round_without_answers_is_unknown_and_loses_no_evidence(kind: str) -> None:
    rule = make("rule", kind, RULES[kind])
    before = {"watch": {"capital": [0.1] * 7, "judged": 3, "alarmed": False, "recovery": 0.0}}
    verdict = rule.judge(Case(1, (), None, before=before))
    if kind not in ("completeness", "drift_level"):
        assert (verdict.state, dict(verdict.details)) == ("unknown", before)


@pytest.mark.parametrize("kind", [*RULES, "paired"])
def test_restated_after_the_same_round_a_verdict_is_the_same(kind: str) -> None:
    """What a round says by itself is enough to say again what was concluded."""
    rule = AccuracyBehind("models:/m/2") if kind == "paired" else make("rule", kind, RULES[kind])
    before: dict[str, Any] = {}
    for case in cases([0.05] * 3 + [0.3] * 4, received=100, scored=99, asked=100, answered=90, robustness=0.4):
        assert case.sample is not None
        rival = np.zeros(BUDGET) if kind == "paired" else None
        verdict = rule.judge(
            replace(case, before=before, rival=rival, classes=np.full(BUDGET, "a"), class_names=("a",))
        )
        details = json.loads(json.dumps(dict(verdict.details)))
        again = rule.restate(before, details)
        if kind in ("drift_level", "accuracy_behind") or (kind == "accuracy_drop" and case.number <= 3):
            assert again is None, "nothing of the kind was kept"
        else:
            assert again is not None
            assert (again.state, again.message) == (verdict.state, verdict.message)
            assert again.details.keys() == details.keys()
            assert again.details.get("watch", {}).get("alarmed") == details.get("watch", {}).get("alarmed")
        before = details


# level


def test_level_alarms_on_a_drop_and_says_why() -> None:
    found = judged(AccuracyLevel(0.9), cases([0.07] * 10 + [0.25] * 6))
    assert {verdict.state for verdict in found[:10]} == {"ok"}
    assert found[-1].state == "alarm"
    first = next(verdict for verdict in found if verdict.state == "alarm")
    assert "times what an alarm takes" in first.message
    assert "probability 5 % at most, for ever" in first.message
    assert first.details["evidence"] >= 1


def test_level_tells_how_many_labels_are_missing() -> None:
    found = judged(AccuracyLevel(0.9), cases([0.19] * 3, seed=3))
    waiting = [verdict for verdict in found if verdict.state == "ok"]
    assert "more labels like these would make an alarm" in waiting[0].message


def test_level_says_why_a_round_out_of_line_is_no_alarm() -> None:
    fine, out = judged(AccuracyLevel(0.9), cases([0.05, 0.2]))
    assert out.state == "ok"
    assert "the whole interval is below the line, as that of 1 round in 40 of a model at the line" in out.message
    assert "the whole interval" not in fine.message


def test_level_with_a_yearly_rate_says_how_many_rounds_that_is() -> None:
    verdict = judged(AccuracyLevel(0.9, false_alarms="1 per year"), cases([0.05]))[0]
    assert "1 false alarm per year at most, one in 8,766 rounds" in verdict.message


def test_level_recovers_with_evidence() -> None:
    found = judged(AccuracyLevel(0.9), cases([0.3] * 5 + [0.03] * 6))
    states = [verdict.state for verdict in found]
    assert states[4] == "alarm"
    assert states[-1] == "ok"
    assert "recovered" in next(v.message for v in found[5:] if v.state == "ok")


def test_level_set_otherwise_begins_anew() -> None:
    first = judged(AccuracyLevel(0.9), cases([0.3] * 3))[-1]
    case = next(cases([0.1]))
    verdict = AccuracyLevel(0.85).judge(replace(case, before=first.details))
    assert verdict.details["rounds_judged"] == 1


@pytest.mark.parametrize(
    "arguments",
    [{"threshold": 92}, {"threshold": 1}, {"threshold": float("nan")}, {"threshold": 0.9, "recovery": 1},
     {"threshold": 0.9, "alpha": 0.1, "false_alarms": "1 per year"}, {"threshold": 0.9, "name": " "}],
)  # fmt: skip
def test_level_refuses_what_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        AccuracyLevel(**arguments)


# drop


def test_drop_takes_a_baseline_and_then_watches() -> None:
    found = judged(AccuracyDrop(0.05, rounds=5), cases([0.05] * 10 + [0.3] * 8))
    assert [verdict.state for verdict in found[:6]] == ["unknown"] * 5 + ["ok"]
    baseline = found[5].details["baseline"]
    assert baseline["low"] < baseline["value"]
    assert baseline["line"] == pytest.approx(baseline["low"] - 0.05)
    assert found[-1].state == "alarm"
    assert found[-1].details["baseline"] == baseline, "the baseline does not follow the model down"


def test_drop_from_a_known_baseline_needs_no_rounds() -> None:
    verdict = judged(AccuracyDrop(0.05, baseline=0.95), cases([0.05]))[0]
    assert (verdict.state, verdict.threshold) == ("ok", pytest.approx(0.90))


def test_drop_spends_half_of_alpha_on_the_baseline() -> None:
    known, taken = AccuracyDrop(0.05, baseline=0.95), AccuracyDrop(0.05, rounds=1)
    one = judged(known, cases([0.05]))[0].details["watch"]["capital"]
    both = judged(taken, cases([0.05, 0.05]))[1].details["watch"]["capital"]
    assert sum(both) < sum(one)


def test_drop_from_a_chosen_period_of_the_past() -> None:
    rounds = list(cases([0.05] * 6))
    case = replace(rounds[-1], numbers=tuple(range(11, 17)), number=16)
    verdict = AccuracyDrop(0.05, period=(12, 14)).judge(case)
    assert verdict.state == "ok"
    baseline = verdict.details["baseline"]
    assert baseline["rounds"] == 3
    assert baseline["value"] == pytest.approx(np.mean([e.value for e in case.estimates[1:4]]))
    later = AccuracyDrop(0.05, period=(12, 14)).judge(
        replace(case, numbers=(), estimates=case.estimates[:1], before=verdict.details)
    )
    assert later.details["baseline"] == baseline, "once taken it stays"
    assert AccuracyDrop(0.05, period=(12, 20)).judge(case).state == "unknown"


@pytest.mark.parametrize("arguments", [{"period": (5, 2)}, {"period": (0, 2)}, {"period": (1, 2), "baseline": 0.9}])
def test_periods_that_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="period"):
        AccuracyDrop(0.05, **arguments)


# slices


def in_classes(case: Case, broken: float) -> Case:
    """Every other draw is predicted "a", the others "b"; "b" fails more."""
    rng = np.random.default_rng(case.number)
    classes = np.array(["a", "b"] * (BUDGET // 2))
    outcomes = np.where(classes == "b", rng.random(BUDGET) < broken, rng.random(BUDGET) < 0.03)
    sample = sample_of(outcomes)
    return replace(case, sample=sample, classes=classes, class_names=("a", "b", "c"))


def test_slices_name_the_class_that_is_broken() -> None:
    found = judged(AccuracySlices(0.9), (in_classes(case, 0.35) for case in cases([0.1] * 15)))
    assert found[-1].state == "alarm"
    assert found[-1].details["slices_alarmed"] == ["b"]
    assert "b: " in found[-1].message


def test_slices_share_the_bound() -> None:
    rounds = [in_classes(case, 0.05) for case in cases([0.1])]
    one = AccuracySlices(0.9, classes=("a",)).judge(rounds[0]).details["of"]["a"]
    three = AccuracySlices(0.9).judge(rounds[0]).details["of"]["a"]
    assert three["evidence"] == pytest.approx(one["evidence"] / 3)


def test_slices_of_a_variable() -> None:
    values = np.linspace(0, 1, BUDGET)
    case = replace(next(cases([0.1])), variables={"confidence": values})
    verdict = AccuracySlices(0.9, by="confidence", edges=(0.2, 0.5)).judge(case)
    assert len(verdict.details["of"]) == 3


def test_slices_refuse_weights_that_bets_do_not_allow_for() -> None:
    draw = Draw("sups", N, np.arange(2), {"probability": np.array([1e-6, 1e-3])})
    sample = Sample(draw, np.zeros(2))
    case = replace(
        next(cases([0.1])), sample=sample, design=design_of(sample), classes=np.array(["a", "a"]), class_names=("a",)
    )
    verdict = AccuracySlices(0.9).judge(case)
    assert verdict.state == "unknown"
    assert "defensive" in verdict.message


# challenger


def test_behind_sees_a_better_rival_and_not_a_worse_one() -> None:
    rule = AccuracyBehind("models:/digits/2")

    def against(better: bool) -> list[Verdict]:
        def rounds() -> Iterator[Case]:
            for case in cases([0.15] * 12):
                assert case.sample is not None
                rng, own = np.random.default_rng(case.number), case.sample.outcomes
                fixed = np.where(rng.random(BUDGET) < 0.5, 0.0, own)
                yield replace(case, rival=fixed if better else np.maximum(own, rng.random(BUDGET) < 0.05))

        return judged(rule, rounds())

    assert against(better=True)[-1].state == "alarm"
    assert {verdict.state for verdict in against(better=False)} == {"ok"}


def test_behind_without_a_rival_is_unknown() -> None:
    assert AccuracyBehind("models:/digits/2").judge(next(cases([0.1]))).state == "unknown"


# counts and levels


def test_completeness_counts_what_is_missing() -> None:
    case = next(cases([0.1], received=100, scored=80, asked=50, answered=40))
    assert Completeness().judge(case).state == "alarm"
    assert Completeness(scored=0.5).judge(case).state == "ok"
    first = Completeness(patience=2).judge(case)
    assert first.state == "ok"
    assert Completeness(patience=2).judge(replace(case, before=first.details)).state == "alarm"


def test_drift_is_advice_and_never_an_alarm() -> None:
    case = next(cases([0.1], drift=0.8))
    verdict = DriftLevel(0.5).judge(case)
    assert (verdict.state, verdict.details["advice"]) == ("ok", True)
    assert not DriftLevel(0.9).judge(case).details["advice"]


def test_robustness_does_not_flicker() -> None:
    rule, case = RobustnessLevel(0.5), next(cases([0.1]))
    states, before = [], {}
    for number in (0.6, 0.49, 0.505, 0.52):
        verdict = rule.judge(replace(case, robustness=number, before=before))
        states.append(verdict.state)
        before = dict(verdict.details)
    assert states == ["ok", "alarm", "alarm", "ok"]


# the plain rule


def test_the_plain_rule_prints_how_often_it_alarms_for_nothing() -> None:
    verdict = AccuracyBelow(0.9).judge(next(cases([0.05])))
    assert verdict.details["rounds_in_a_year"] == 8766
    assert verdict.details["false_alarm_in_a_year"] == pytest.approx(1.0)
    assert "no bound is kept" in verdict.message


def test_level_of_a_regression_whose_errors_are_skewed() -> None:
    """Squared errors have no upper bound, and the accuracy 1 − MSE may be below 0."""
    rng, rule = np.random.default_rng(4), AccuracyLevel(-0.5)

    def rounds(scale: float, count: int) -> Iterator[Case]:
        for number in range(1, count + 1):
            sample = sample_of(scale * rng.normal(size=BUDGET) ** 2)
            yield Case(number, (SimpleRandomEstimator().estimate(sample),), sample, SimpleRandomEstimator())

    assert {verdict.state for verdict in judged(rule, rounds(1.4, 40))} == {"ok"}
    assert judged(rule, rounds(2.5, 10))[-1].state == "alarm"


@pytest.mark.parametrize("rule", [AccuracyLevel(0.9975), AccuracyBelow(0.9975)])
def test_the_line_is_told_with_all_of_its_digits(rule: Rule) -> None:
    assert "99.75 %" in judged(rule, cases([0.1]))[0].message


@pytest.mark.parametrize("rule", [AccuracyLevel(0.9)])
def test_the_line_of_a_mean_score_is_written_as_the_score_is(rule: Rule) -> None:
    (case,) = cases([0.1])
    assert case.estimate is not None
    message = rule.judge(replace(case, estimates=[replace(case.estimate, quantity=MEAN_SCORE)])).message
    assert "0.9 or better" in message
    assert "90 %" not in message
