"""The action that marks the model version in the registry."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.errors import DeliveryError
from opmon.kept_quantities import kept
from opmon.quantities import ACCURACY
from opmon.triggers._on_registry import OnRegistry
from opmon.types import Document, ModelVersion

RETRAIN_TAG = "opmon.retrain"


@dataclass(frozen=True)
class RegistryTag(OnRegistry):
    """On an alarm, sets the tags ``opmon.retrain`` and ``opmon.<monitor>.retrain`` of the model version.

    They say when, why and where: the moment, the round, the estimate with its interval, the threshold, the rule, the
    run that holds it all, and the id of the event. Whoever retrains reads the tag, or lets the registry's own webhook
    on tags start it. Setting the same tag twice changes nothing, so a repeated delivery is harmless. A recovery leaves
    the tag: whoever acted on it removes it.
    """

    retrain: bool = True
    """Whether the tag opmon.retrain is set by an alarm too."""

    def act(self, event: Document) -> None:
        if not self.retrain or event["type"] != "opmon.alarm":
            return
        model = event.get("model") or {}
        if not model.get("name") or not model.get("version"):
            raise DeliveryError(f"event {event['id']} names no model version to tag", final=True)
        version = ModelVersion(name=str(model["name"]), version=str(model["version"]), flavors=())
        own = f"opmon.{event['monitor']}.retrain"  # another monitor's alarm on this version leaves it
        said = self._said(event)
        self.registry.tag_version(version, {RETRAIN_TAG: said, own: said})

    def _said(self, event: Document) -> str:
        """When, why and where; the same for the same event."""
        run_id = str(event.get("run_uri") or "").removeprefix("runs:/")
        page = self.registry.page_of(run_id, outside=True) if run_id else None
        parts = [
            f"{str(event['at'])[:16].replace('T', ' ')} UTC: {event['rule']} raised an alarm in round {event['round']}",
            _figures(event),
            f"See {page or f'runs:/{run_id}'}" if run_id else "",
            f"Event {event['id']}",
        ]
        return ". ".join(part for part in parts if part)


def _figures(event: Document) -> str:
    estimate, line = event.get("estimate"), event.get("threshold")
    if not estimate:
        return ""
    quantity = kept({"quantity": ACCURACY.name, **estimate})
    value, low, high = quantity.texts(estimate["value"], estimate["low"], estimate["high"])
    threshold = "" if line is None else f", threshold {quantity.threshold(line)}"
    sure = "counted" if estimate["low"] == estimate["high"] else f"{low} to {high}"
    return f"{quantity.caption} {value} ({sure}){threshold}"
