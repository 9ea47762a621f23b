"""What opmon.yaml says of rules and actions beside the plugin's own parameters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import pytest

from opmon import plugins
from opmon.abc import Sampler
from opmon.config import Settings
from opmon.errors import ConfigError
from opmon.types import Draw, Frame


def settings(rule: dict[str, Any] | None = None, action: dict[str, Any] | None = None) -> Any:
    monitor: dict[str, Any] = {"model": "models:/m@champion", "source": {"path": "production"}}
    if rule is not None:
        monitor["rules"] = [{"type": "accuracy_level", "threshold": 0.9} | rule]
    if action is not None:
        monitor["actions"] = [{"type": "registry_tag"} | action]
    return Settings.from_mapping({"monitors": {"m": monitor}}).monitor("m")


def test_rules_act_unless_said_otherwise() -> None:
    assert settings({}).rules[0].acts
    assert not settings({"mode": "advise"}).rules[0].acts
    assert (
        not Settings.from_mapping(
            {"monitors": {"m": {"model": "models:/m/1", "source": {"path": "p"}, "rules": [{"type": "drift_level"}]}}}
        )
        .monitor("m")
        .rules[0]
        .acts
    ), "drift only ever advises"


def test_a_cooldown_is_a_duration() -> None:
    assert settings({"cooldown": "24h"}).rules[0].cooldown == timedelta(days=1)


def test_false_alarms_are_a_rate() -> None:
    assert settings({"false_alarms": "1 per year"}).rules[0].plugin.false_alarms == "1 per year"


def test_silence_is_a_list_of_windows() -> None:
    found = settings(action={"silence": ["sat,sun", "mon-fri 22:00-07:00 Europe/Berlin"]}).actions[0]
    assert [len(window.days) for window in found.windows] == [2, 5]
    assert settings(action={"silence": "22:00-07:00"}).actions[0].silence == ("22:00-07:00",)


@pytest.mark.parametrize(
    ("rule", "action", "told"),
    [
        ({"mode": "shout"}, None, "mode"),
        ({"cooldown": "soon"}, None, "cooldown"),
        ({"false_alarms": "seldom"}, None, "false_alarms"),
        ({"alpha": 5}, None, "alpha"),
        (None, {"silence": ["whenever"]}, "silence"),
    ],
)
def test_what_is_wrong_is_told_by_its_key(
    rule: dict[str, Any] | None, action: dict[str, Any] | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        settings(rule, action)


def test_own_keys_are_shown_where_they_are_set() -> None:
    shown = settings({"mode": "advise", "cooldown": "24h"}, {"silence": ["sat"]})
    assert shown.model_dump(mode="json")["rules"][0] | {} == {
        "type": "accuracy_level", "mode": "advise", "cooldown": "1d", "threshold": 0.9
    }  # fmt: skip
    assert shown.model_dump(mode="json")["actions"][0]["silence"] == ["sat"]


@dataclass(frozen=True)
class Mine(Sampler):
    """A sampler from elsewhere, of a design that nobody here knows."""

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        return Draw("mine", frame.size, rng.integers(0, frame.size, budget))


@dataclass(frozen=True)
class Likewise(Mine):
    """One that draws as a built-in design does, and says so."""

    design: ClassVar[str | None] = "ssrs"


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    samplers = {"mine": Mine, "likewise": Likewise}
    names, load = plugins.names, plugins.load
    monkeypatch.setattr(plugins, "names", lambda kind: [*names(kind), *(samplers if kind == "sampler" else ())])
    monkeypatch.setattr(plugins, "load", lambda kind, name: samplers.get(name) or load(kind, name))


@pytest.mark.usefixtures("plugged")
@pytest.mark.parametrize(
    "rule",
    [
        {"type": "accuracy_level", "threshold": 0.9},
        {"type": "accuracy_mean", "threshold": 0.9, "rounds": 5},
        {"type": "accuracy_drop", "drop": 0.1},
        {"type": "accuracy_slices", "threshold": 0.9},
        {"type": "accuracy_behind", "rival": "models:/m/2"},
    ],
)
def test_rules_that_bet_are_refused_with_a_design_that_is_not_known(rule: dict[str, Any]) -> None:
    """It would be taken for simple random sampling: weights and bets wrong without a word."""
    monitor = {"model": "models:/m/1", "source": {"path": "p"}, "sampler": {"type": "mine"}, "rules": [rule]}
    with pytest.raises(ConfigError, match=rf"{rule['type']} bets on draws.*'mine'.*accuracy_below.*design = "):
        Settings.from_mapping({"monitors": {"m": monitor}})
    plain = {"type": "accuracy_below", "threshold": 0.9}
    Settings.from_mapping({"monitors": {"m": monitor | {"rules": [plain, {"type": "completeness"}]}}})
    Settings.from_mapping({"monitors": {"m": monitor | {"sampler": {"type": "likewise"}}}})


def test_a_rule_is_what_it_does_and_not_what_it_is_called() -> None:
    """Evidence belongs to one identity; a default that is written out makes no other."""
    plain = settings({}).rules[0].identity
    assert plain == settings({"recovery": 20, "name": "floor", "cooldown": "1h"}).rules[0].identity
    for other in ({"threshold": 0.91}, {"alpha": 0.01}, {"recovery": 40}, {"mode": "advise"}):
        assert settings(other).rules[0].identity != plain
