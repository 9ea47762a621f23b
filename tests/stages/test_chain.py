"""A rule's verdicts in the order of the rounds, whatever the order in which labels come in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmon.config import RuleSettings
from opmon.decisions.case import Case
from opmon.estimators.srs import SimpleRandomEstimator
from opmon.stages.chain import Chain, Conclusion, closed, conclude
from opmon.store.verdicts import Entry
from opmon.types import Draw, Sample, Verdict

LEVEL = {"type": "accuracy_level", "threshold": 0.9}
RULES: Mapping[str, Mapping[str, Any]] = {
    "level": LEVEL,
    "below": {"type": "accuracy_below", "threshold": 0.9, "patience": 2},
    "known drop": {"type": "accuracy_drop", "drop": 0.08, "baseline": 0.99},
    "taken drop": {"type": "accuracy_drop", "drop": 0.08, "rounds": 2},
    "slices": {"type": "accuracy_slices", "threshold": 0.9},
    "mean": {"type": "accuracy_mean", "threshold": 0.9, "rounds": 2},
}
N, BUDGET = 2000, 100
GOOD, BAD = 0.01, 0.5
LIFE = [GOOD] * 4 + [BAD] * 4 + [GOOD] * 8
"""One drop, and its end."""


def rule_of(given: Mapping[str, Any]) -> RuleSettings:
    return RuleSettings.model_validate(dict(given))


@dataclass
class World:
    """Rounds whose labels come in one after another, and a rule that judges them as the monitor lets it."""

    rates: Sequence[float]
    rule: RuleSettings
    said: dict[int, Entry] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    """By round: the share of its labels that is there; rounds not in it wait for theirs."""
    given_up: set[int] = field(default_factory=set)
    calls: list[tuple[str, int]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def sample(self, number: int) -> Sample:
        rng = np.random.default_rng(number)
        outcomes = (rng.random(BUDGET) < self.rates[number - 1]).astype(np.float64)
        outcomes[int(self.answered[number] * BUDGET) :] = np.nan
        draw = Draw("srs", N, np.arange(BUDGET), constants={"replacement": np.array(False)})
        return Sample(draw, outcomes, "classification")

    def label(self, number: int, share: float = 1.0) -> None:
        """Labels come in for a round; then every round that may be judged is."""
        self.answered[number] = share
        revised = number in self.said
        for each in sorted(self.answered):
            waits = any(n not in self.answered and n not in self.given_up for n in range(1, each))
            if (each not in self.said and not waits) or (each == number and revised):
                self._judge(each)

    def _judge(self, number: int) -> None:
        estimates = [SimpleRandomEstimator().estimate(self.sample(n)) for n in sorted(self.answered) if n <= number]
        sample = self.sample(number)
        classes = np.where(np.arange(BUDGET) % 2, "a", "b")
        case = Case(number, estimates, sample, SimpleRandomEstimator(), classes=classes, class_names=("a", "b"))
        found = conclude(
            self.rule, self.chain(number), number, lambda before: self.rule.plugin.judge(replace(case, before=before))
        )
        self._write(number, found)

    def _write(self, number: int, found: Conclusion) -> None:
        for entry, verdict in [(Entry(number, number, 0, found.verdict), found.verdict), *found.restated]:
            kept: dict[str, Any] = json.loads(json.dumps(dict(verdict.details)))
            self.said[entry.number] = replace(entry, verdict=replace(verdict, details=kept))
        self.calls += [(call.turn, call.number) for call in found.calls]
        self.messages += [call.verdict.message for call in found.calls]

    def chain(self, number: int) -> Chain:
        before = [self.said[n] for n in sorted(self.said) if n < number]
        return Chain(
            before=before[-1] if before else None,
            stood=next((each for each in reversed(before) if each.alarmed is not None), None),
            own=self.said.get(number),
            later=[self.said[n] for n in sorted(self.said) if n > number],
        )

    def states(self) -> list[str]:
        return [self.said[number].verdict.state for number in sorted(self.said)]


def lived(rule: Mapping[str, Any], order: Sequence[int], rates: Sequence[float] = LIFE) -> World:
    world = World(rates, rule_of(rule))
    for number in order:
        world.label(number)
    return world


@pytest.mark.parametrize("name", RULES)
def test_the_order_of_labels_is_no_matter(name: str) -> None:
    """Rounds 1, 4, 2, 5, 3, …: one drop, one alarm, one recovery, and every state as if they had come in order."""
    in_order = lived(RULES[name], range(1, 17))
    shuffled = lived(RULES[name], [1, 4, 2, 5, 3, 16, 15, 6, 8, 7, 14, 9, 12, 13, 10, 11])
    assert [turn for turn, _ in in_order.calls] == ["alarm", "recovered"]
    assert shuffled.calls == in_order.calls
    assert shuffled.states() == in_order.states()


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(1, 17)), st.sampled_from(sorted(RULES)))
def test_any_order_of_labels_gives_the_same_states_and_events(order: list[int], name: str) -> None:
    in_order, shuffled = lived(RULES[name], range(1, 17)), lived(RULES[name], order)
    assert (shuffled.calls, shuffled.states()) == (in_order.calls, in_order.states())
    assert shuffled.said[16].verdict.details == in_order.said[16].verdict.details


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(1, 17)), st.permutations(range(1, 17)), st.sampled_from(sorted(RULES)), st.data())
def test_late_labels_and_revisions_make_no_second_alarm_of_one_drop(
    first: list[int], later: list[int], name: str, data: st.DataObject
) -> None:
    """Half of the labels in one order, the others in another, in between and afterwards."""
    world = World(LIFE, rule_of(RULES[name]))
    rest = list(later)
    for number in first:
        world.label(number, 0.5)
        for late in [each for each in rest if each in world.answered and data.draw(st.booleans())]:
            world.label(late)
            rest.remove(late)
    for late in rest:
        world.label(late)
    assert [turn for turn, _ in world.calls] == ["alarm", "recovered"]


def test_a_late_label_replaces_what_its_round_adds_to_the_evidence_and_later_rounds_are_said_anew() -> None:
    late, whole = World([GOOD] * 5, rule_of(LEVEL)), lived(LEVEL, range(1, 6), [GOOD] * 5)
    for number in (1, 2, 3, 4, 5):
        late.label(number, 0.4 if number == 2 else 1.0)
    assert late.said[5].verdict.details["evidence"] != whole.said[5].verdict.details["evidence"]
    late.label(2)
    for number in (2, 3, 5):
        mine, theirs = late.said[number].verdict, whole.said[number].verdict
        assert mine.details["evidence"] == pytest.approx(theirs.details["evidence"], rel=1e-9)
        assert mine.message == theirs.message
    assert late.calls == []


def test_a_drop_that_only_late_labels_show_is_an_alarm_of_the_round_in_which_it_began() -> None:
    world = World([GOOD] * 2 + [0.2] * 4, rule_of(LEVEL))
    for number in range(1, 7):
        world.label(number, 0.03)
    assert world.calls == []
    for number in range(1, 7):
        world.label(number)
    turns = world.calls
    assert [turn for turn, _ in turns] == ["alarm"]
    assert world.states()[turns[0][1] - 2 : turns[0][1]] == ["ok", "alarm"]


def test_what_was_told_stays_as_it_was() -> None:
    """An alarm was raised in round 5: labels that come late for it or before it take nothing back and add nothing."""
    world = World(LIFE, rule_of(LEVEL))
    for number in range(1, 7):
        world.label(number, 0.5)
    assert world.calls == [("alarm", 5)]
    evidence = world.said[6].verdict.details
    for number in (2, 5):
        world.label(number)
        assert "labels came late" in world.said[number].verdict.message
        world.label(number)
        assert world.said[number].verdict.message.count("labels came late") == 1
    assert world.said[6].verdict.details == evidence
    assert world.calls == [("alarm", 5)]


def test_a_round_that_was_given_up_keeps_no_other_waiting_and_may_come_after_all() -> None:
    world = World([GOOD] * 6, rule_of(LEVEL))
    for number in (1, 2, 4):
        world.label(number)
    assert sorted(world.said) == [1, 2]
    world.given_up.add(3)
    world.label(5)
    assert sorted(world.said) == [1, 2, 4, 5]
    world.label(3)
    assert world.said[5].verdict.details["rounds_judged"] == 5, "it has its place in the order"


# another rule


def test_a_rule_changed_during_an_alarm_closes_it_as_changed_and_not_as_recovered() -> None:
    """Alarm at 50 %; the threshold is raised, and the next round is at 99 %."""
    world = World([GOOD] * 2 + [BAD] * 2 + [GOOD] * 3, rule_of(LEVEL))
    for number in (1, 2, 3, 4):
        world.label(number)
    world.rule = rule_of(LEVEL | {"threshold": 0.95})
    for number in (5, 6):
        world.label(number)
    assert world.calls == [("alarm", 3), ("changed", 5)]
    assert "threshold 0.9 → 0.95" in world.messages[1]
    assert "no recovery" in world.messages[1]
    assert "probability 5 % at most" in world.messages[1]
    assert world.said[5].verdict.message.startswith("the rule was changed (threshold 0.9 → 0.95)")
    assert not world.said[6].verdict.message.startswith("the rule was changed")
    assert [world.said[n].verdict.details["version"] for n in (4, 5, 6)] == [1, 2, 2]


@pytest.mark.parametrize("kind", ["accuracy_below", "accuracy_level"])
def test_a_changed_rule_may_alarm_in_the_same_round(kind: str) -> None:
    world = World([BAD] * 3, rule_of({"type": kind, "threshold": 0.9, "name": "floor"}))
    world.label(1)
    world.rule = rule_of({"type": kind, "threshold": 0.85, "name": "floor"})
    world.label(2)
    assert world.calls == [("alarm", 1), ("changed", 2), ("alarm", 2)]


def test_a_rule_changed_in_peace_begins_anew_and_says_so_and_raises_nothing() -> None:
    world = World([GOOD] * 4, rule_of(LEVEL))
    world.label(1)
    world.label(2)
    world.rule = rule_of(LEVEL | {"alpha": 0.01})
    world.label(3)
    assert world.calls == []
    assert world.said[3].verdict.details["rounds_judged"] == 1
    assert "version 2 of this rule, and each version has a bound of its own" in world.said[3].verdict.message


def test_a_default_that_is_written_out_is_no_change() -> None:
    world = World([GOOD] * 2, rule_of(LEVEL))
    world.label(1)
    world.rule = rule_of(LEVEL | {"recovery": 20, "mode": "act", "cooldown": "1h"})
    world.label(2)
    assert world.said[2].verdict.details["rounds_judged"] == 2


def test_the_end_of_a_changed_rule_is_told_once_though_the_new_one_knows_nothing_yet() -> None:
    world = World([BAD] * 8, rule_of({"type": "accuracy_drop", "drop": 0.1, "baseline": 0.95}))
    world.label(1)
    world.rule = rule_of({"type": "accuracy_drop", "drop": 0.1, "rounds": 3})
    for number in range(2, 6):
        world.label(number)
    assert world.calls == [("alarm", 1), ("changed", 2)]
    world.label(2)
    assert len(world.calls) == 2


def test_a_rule_changed_and_changed_back_is_a_third_one() -> None:
    """Its alarm of before is neither closed twice nor taken for one of the rule as it is now."""
    world = World([BAD] * 8, rule_of(LEVEL))
    world.label(1)
    changed = rule_of(LEVEL | {"threshold": 0.8})
    for number, rule in ((2, changed), (3, rule_of(LEVEL)), (4, rule_of(LEVEL))):
        world.rule = rule
        world.answered[number] = 0.0
        world.rates = [*world.rates]
        unknown = conclude(rule, world.chain(number), number, lambda before: Verdict("floor", "unknown", "no answers"))
        world._write(number, unknown)
    assert world.calls == [("alarm", 1), ("changed", 2)], "closed once, by the first change"
    del world.answered[2], world.answered[3], world.answered[4]
    world.given_up |= {2, 3, 4}
    for number in (5, 6):
        world.label(number)
    assert world.calls[2:] == [("alarm", 5)], "the rule as it is now begins an alarm of its own"
    assert world.said[5].verdict.details["version"] == 3


def test_the_alarm_of_a_rule_that_is_configured_no_more_is_closed_once() -> None:
    world = World([BAD] * 2, rule_of(LEVEL))
    world.label(1)
    over = closed("accuracy-level", world.chain(2), 2)
    assert over is not None
    assert [(call.turn, call.acts) for call in over.calls] == [("changed", True)]
    assert "not configured any more" in over.verdict.message
    world.said[2] = Entry(2, 2, 0, over.verdict)
    assert closed("accuracy-level", world.chain(3), 3) is None
    world.rates, world.answered = [BAD] * 3, {1: 1.0, 2: 1.0}
    world.label(3)
    assert world.calls == [("alarm", 1), ("alarm", 3)], "configured again it is a new rule"


def test_a_rule_whose_memory_fails_it_stops_nothing() -> None:
    world = World([GOOD] * 4, rule_of(LEVEL))
    for number in (1, 2, 3):
        world.label(number, 0.5)
    broken = dict(world.said[3].verdict.details) | {"round": {"growth": {}}}
    world.said[3] = replace(world.said[3], verdict=replace(world.said[3].verdict, details=broken))
    world.label(2)
    assert world.said[3].verdict.details == broken
    assert isinstance(world.said[2].verdict, Verdict)
