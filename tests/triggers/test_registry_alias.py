from __future__ import annotations

from pathlib import Path

import pytest

from opmon.abc import Action
from opmon.errors import DeliveryError, InputError
from opmon.registry import MlflowRegistry
from opmon.triggers.registry_alias import RegistryAlias
from opmon.types import ModelVersion
from tests.made_once import new_mlflow_store


@pytest.fixture
def registry(tmp_path: Path) -> MlflowRegistry:
    """A real registry with versions 1 to 3 of a model."""
    import mlflow

    uri = new_mlflow_store(tmp_path)
    client = mlflow.MlflowClient(uri)
    client.create_registered_model("digits")
    for _ in range(3):
        client.create_model_version("digits", (tmp_path / "model").as_uri())
    return MlflowRegistry(uri)


def meaning(registry: MlflowRegistry, alias: str) -> str | None:
    found = registry._client.get_registered_model("digits").aliases.get(alias)
    return None if found is None else str(found)


def test_an_alarm_sets_the_alias_and_a_recovery_takes_it_away(registry, event) -> None:
    action = RegistryAlias().bind(registry)
    assert isinstance(action, Action)
    action.act(event)
    action.act(event)
    assert meaning(registry, "degraded") == "3"
    recovered = {**event, "type": "opmon.recovered"}
    action.act(recovered)
    action.act(recovered)
    assert meaning(registry, "degraded") is None


def test_the_alias_stays_while_the_alarm_of_another_rule_stands(registry, event) -> None:
    action = RegistryAlias().bind(registry)
    action.act(event)
    action.act({**event, "type": "opmon.recovered", "alarms": ["level"]})
    assert meaning(registry, "degraded") == "3"
    action.act({**event, "type": "opmon.recovered", "rule": "level", "alarms": []})
    assert meaning(registry, "degraded") is None


def test_an_alias_that_moved_on_is_left_alone(registry, event) -> None:
    action = RegistryAlias().bind(registry)
    action.act(event)
    registry.set_alias(ModelVersion("digits", "2", ()), "degraded")
    action.act({**event, "type": "opmon.recovered"})
    assert meaning(registry, "degraded") == "2"


def test_an_event_without_a_model_cannot_be_done(registry, event) -> None:
    with pytest.raises(DeliveryError) as raised:
        RegistryAlias().bind(registry).act({**event, "model": None})
    assert raised.value.final


@pytest.mark.parametrize("kind", ["opmon.silent", "opmon.heard"])
def test_a_monitor_that_is_silent_moves_no_alias(registry, event, kind: str) -> None:
    """Such an event is of the monitor, and may name no version."""
    action = RegistryAlias().bind(registry)
    action.act(event)
    action.act({**event, "type": kind, "model": None})
    assert meaning(registry, "degraded") == "3"


@pytest.mark.parametrize("alias", ["", "latest", None])
def test_names_that_cannot_be(alias) -> None:
    with pytest.raises(InputError, match="alias"):
        RegistryAlias(alias)
