"""The keys of one action."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, InstanceOf, field_validator, model_serializer, model_validator

from opmon.abc import Action
from opmon.config.plugged import Plugged
from opmon.config.redaction import shown
from opmon.triggers.silence import Silence


class ActionSettings(Plugged):
    """What is done on an alarm."""

    kind = "action"
    own = ("type", "name", "silence")
    plugin: InstanceOf[Action] = Field(repr=False)
    name: str = ""
    """What its deliveries are known by; the type, where nothing is given."""
    silence: tuple[str, ...] = ()
    """Windows in which it waits, such as ``mon-fri 22:00-07:00 Europe/Berlin``."""

    @field_validator("silence", mode="before")
    @classmethod
    def _windows(cls, value: object) -> object:
        given = [value] if isinstance(value, str) else value
        for window in given if isinstance(given, list | tuple) else ():
            Silence.parse(window)
        return given

    @property
    def windows(self) -> tuple[Silence, ...]:
        return tuple(Silence.parse(window) for window in self.silence)

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, object]:
        """As in the file, with all that is secret hidden."""
        own: dict[str, object] = {"type": self.type, "name": self.name}
        if self.silence:
            own["silence"] = list(self.silence)
        return {**own, **{key: shown(value, key) for key, value in self.parameters.items()}}

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, data: object) -> object:
        return {"name": data.get("type"), **data} if isinstance(data, Mapping) else data
