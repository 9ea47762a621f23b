"""The keys that say what of the model is estimated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field, InstanceOf, model_serializer, model_validator

from opmon.abc import Measure
from opmon.config.classes import class_name
from opmon.config.part import at_key
from opmon.config.plugged import Plugged
from opmon.quantities import Quantity
from opmon.types import Document, Json
from opmon.wording import meant, nearest


class MeasureSettings(Plugged):
    """A measure: its name alone, or with its parameters, such as ``{recall: {class: fraud}}``."""

    kind = "measure"
    plugin: InstanceOf[Measure] = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, str):
            return {"type": data}
        if not isinstance(data, Mapping):
            return data
        if "type" in data:
            return cls._of_class(data)
        if len(data) != 1:
            raise ValueError("must be the name of a measure, or {name: {parameter: value}}, such as "
                             "{recall: {class: fraud}}")  # fmt: skip
        name, parameters = next(iter(data.items()))
        if parameters is not None and not isinstance(parameters, Mapping):
            raise at_key(str(name), "takes its parameters by name, such as {recall: {class: fraud}}")
        return cls._of_class({"type": str(name), **(parameters or {})})

    @staticmethod
    def _of_class(data: Mapping[str, object]) -> dict[str, object]:
        """With the class that it is of as classes are written: 1 is the class ``"1"``."""
        if data.get("class") is None:
            return dict(data)
        try:
            return {**data, "class": class_name(data["class"])}
        except ValueError as exc:
            raise at_key("class", str(exc)) from exc

    @property
    def key(self) -> str:
        """Its name with what it is of, such as ``recall[fraud]``."""
        return self.plugin.quantity().name

    def quantity(self, unit: str | None) -> Quantity:
        """What it estimates, told from the same by other parameters where the name does not tell them."""
        return distinct(self.plugin.quantity(unit), self.type, self.parameters)

    @property
    def stored(self) -> dict[str, Json]:
        """As the plan of a round keeps it."""
        stored: dict[str, Json] = json.loads(json.dumps({"type": self.type, **self.parameters}, default=str))
        return stored

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, object]:
        """As in the file, with its parameters."""
        return {self.type: dict(self.parameters)}


def distinct(quantity: Quantity, kind: str, parameters: Document) -> Quantity:
    """The quantity of a measure with what tells it from others of its name, where its parameters are not all in it."""
    if all(str(value) in quantity.name for value in parameters.values()):
        return quantity
    text = json.dumps([kind, dict(parameters)], sort_keys=True, default=str)
    return replace(quantity, definition=hashlib.sha256(text.encode()).hexdigest()[:12])


def named(measures: Sequence[MeasureSettings], name: str) -> MeasureSettings:
    """The measure of this key or name, where one alone has it; a :class:`ValueError` that says what is there."""
    keys = [each.key for each in measures]
    found = [each for each in measures if name in (each.key, each.key.replace(" ", "_"))]
    found = found or [each for each in measures if each.type == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name!r} is said of several: name one of {', '.join(each.key for each in found)}")
    hint = meant(nearest(name, [*keys, *(each.type for each in measures)], likeness=0.5))
    raise ValueError(f"{name!r} is none of the measures{hint}; they are: {', '.join(keys) or 'none'}")
