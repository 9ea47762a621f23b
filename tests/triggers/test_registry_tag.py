from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from opmon.abc import Action
from opmon.binding import bound
from opmon.errors import DeliveryError
from opmon.kept_quantities import as_kept
from opmon.plugins import make
from opmon.quantities import BIAS, Quantity
from opmon.triggers.registry_tag import RegistryTag
from opmon.types import ModelVersion


class Registry:
    """Remembers the tags of model versions, as a registry does."""

    def __init__(self) -> None:
        self.tags: dict[str, dict[str, str]] = {}

    def tag_version(self, model: ModelVersion, tags: Mapping[str, str]) -> None:
        self.tags.setdefault(model.uri, {}).update(tags)

    def page_of(self, run_id: str, *, outside: bool = False) -> str | None:
        return f"https://mlflow.example.com/#/runs/{run_id}" if outside else f"#/runs/{run_id}"


def test_bound_it_is_an_action_behind_the_entry_point() -> None:
    assert isinstance(make("action", "registry_tag").bind(Registry()), Action)


def test_an_alarm_sets_a_tag_that_says_when_why_and_where(event) -> None:
    registry = Registry()
    action = RegistryTag().bind(registry)
    event |= {"threshold": 0.9}
    action.act(event)
    action.act(event)
    own = f"opmon.{event['monitor']}.retrain"
    said = (
        "2026-11-18 08:00 UTC: accuracy-floor raised an alarm in round 7. Accuracy 85.0 % (80.0 % to 90.0 %), "
        f"threshold 90 %. See https://mlflow.example.com/#/runs/abc. Event {event['id']}"
    )
    assert registry.tags == {"models:/digits/3": {"opmon.retrain": said, own: said}}


def test_what_was_counted_has_no_bounds(event) -> None:
    registry = Registry()
    event["estimate"] |= {"low": event["estimate"]["value"], "high": event["estimate"]["value"]}
    RegistryTag().bind(registry).act(event)
    assert "Accuracy 85.0 % (counted)." in registry.tags["models:/digits/3"]["opmon.retrain"]


@pytest.mark.parametrize(
    ("quantity", "values", "said"),
    [
        (BIAS.measured_in("days"), (-2.4, -3.0, -2.1, 2.0), "Bias -2.4 days (-3.0 to -2.1), threshold ± 2 days"),
        (
            Quantity("share within 3 days", share=True),
            (0.82, 0.78, 0.86, 0.85),
            "Share within 3 days 82.0 % (78.0 % to 86.0 %), threshold 85 %",
        ),
        (Quantity("share", definition="1 of 2"), (0.82, 0.78, 0.86, 0.85), "Share 0.82 (0.78 to 0.86), threshold 0.85"),
    ],
)
def test_the_figures_are_written_as_everywhere(
    quantity: Quantity, values: tuple[float, ...], said: str, event: Any
) -> None:
    value, low, high, threshold = values
    event["estimate"] |= {**as_kept(quantity), "value": value, "low": low, "high": high}
    registry = Registry()
    RegistryTag().bind(registry).act(event | {"threshold": threshold})
    assert bound(f". {said}. ") in bound(registry.tags["models:/digits/3"]["opmon.retrain"])


def test_an_event_without_an_estimate_says_what_it_knows(event) -> None:
    registry = Registry()
    RegistryTag().bind(registry).act({**event, "estimate": None, "run_uri": None})
    said = registry.tags["models:/digits/3"]["opmon.retrain"]
    assert said == f"2026-11-18 08:00 UTC: accuracy-floor raised an alarm in round 7. Event {event['id']}"


def test_alarms_of_two_monitors_on_one_version_leave_each_other_alone(event) -> None:
    registry = Registry()
    for name in ("first", "second"):
        RegistryTag().bind(registry).act({**event, "id": f"of {name}", "monitor": name})
    found = registry.tags["models:/digits/3"]
    assert found["opmon.first.retrain"].endswith("Event of first")
    assert found["opmon.second.retrain"].endswith("Event of second")


def test_a_recovery_leaves_the_tag(event) -> None:
    registry = Registry()
    RegistryTag().bind(registry).act(event)
    RegistryTag().bind(registry).act({**event, "id": "another", "type": "opmon.recovered"})
    (said,) = set(registry.tags["models:/digits/3"].values())
    assert said.endswith(event["id"])


def test_retrain_can_be_left_out(event) -> None:
    registry = Registry()
    RegistryTag(retrain=False).bind(registry).act(event)
    assert registry.tags == {}


@pytest.mark.parametrize("model", [None, {}, {"name": "digits"}, {"version": "3"}])
def test_an_event_without_a_model_cannot_be_tagged(event, model) -> None:
    with pytest.raises(DeliveryError, match="names no model version") as raised:
        RegistryTag().bind(Registry()).act({**event, "model": model})
    assert raised.value.final
