"""The keys of one rule."""

from __future__ import annotations

import dataclasses
import json
from typing import Literal, cast

from pydantic import Field, InstanceOf, model_serializer

from opmon.abc import Rule
from opmon.config.fields import Duration
from opmon.config.plugged import Plugged
from opmon.config.redaction import shown
from opmon.durations import show_duration
from opmon.types import Json


class RuleSettings(Plugged):
    """What makes an alarm.

    With ``mode: advise`` its events are kept and shown, and no action hears of them. For the time of ``cooldown`` after
    an alarm the next one waits, and is withdrawn where it is over before.
    """

    kind = "rule"
    own = ("type", "mode", "cooldown")
    plugin: InstanceOf[Rule] = Field(repr=False)
    mode: Literal["advise", "act"] = "act"
    cooldown: Duration | None = None

    @property
    def acts(self) -> bool:
        """Whether actions are told of what it raises."""
        return self.mode == "act" and not self.plugin.advisory

    @property
    def identity(self) -> dict[str, Json]:
        """What makes it this rule and no other: its type, whether it acts, and every parameter but the name.

        Evidence belongs to one identity: with another threshold or another bound it is another rule that begins anew.
        """
        values, rule = self.parameters, cast(object, self.plugin)
        if dataclasses.is_dataclass(rule):
            values = {each.name: getattr(rule, each.name) for each in dataclasses.fields(rule)}
        parameters = {key: shown(value, key) for key, value in values.items() if key != "name"}
        identity: dict[str, Json] = json.loads(
            json.dumps({"type": self.type, "acts": self.acts, **parameters}, default=str)
        )
        return identity

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, object]:
        """As in the file; the own keys where they are not the default."""
        own: dict[str, object] = {"type": self.type}
        if self.mode != "act":
            own["mode"] = self.mode
        if self.cooldown is not None:
            own["cooldown"] = show_duration(self.cooldown)
        return {**own, **{key: shown(value, key) for key, value in self.parameters.items()}}

    @property
    def name(self) -> str:
        return self.plugin.name
