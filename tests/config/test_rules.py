"""What opmon.yaml says of rules and actions beside the plugin's own parameters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from opmon.config import Settings
from opmon.errors import ConfigError


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
