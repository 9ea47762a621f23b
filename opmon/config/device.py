"""Where the model runs: ``auto``, ``cpu`` or ``cuda``, or execution providers of ONNX Runtime with their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)

from opmon.config.part import Part
from opmon.scoring.devices import Providers

Option = StrictBool | StrictInt | StrictFloat | StrictStr


class DeviceSettings(Part):
    """Execution providers in order of preference, such as ``[cuda]``, and the options of each by its name."""

    providers: tuple[str, ...]
    options: dict[str, dict[str, Option]] = Field(default_factory=dict)

    @field_validator("options", mode="before")
    @classmethod
    def _by_provider(cls, value: object) -> object:
        if isinstance(value, Mapping) and not all(isinstance(options, Mapping) for options in value.values()):
            raise ValueError("must hold options by provider, such as {cuda: {device_id: 1}}")
        return value

    @model_validator(mode="after")
    def _known(self) -> Self:
        _ = self.chosen
        return self

    @property
    def chosen(self) -> Providers:
        return Providers.of(self.providers, self.options)


def _form(value: object) -> str:
    return "by providers" if isinstance(value, Mapping | DeviceSettings) else "by name"


DeviceChoice = Annotated[
    Annotated[Literal["auto", "cpu", "cuda"], Tag("by name")] | Annotated[DeviceSettings, Tag("by providers")],
    Discriminator(_form),
]
