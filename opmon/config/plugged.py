"""The base of the parts of the configuration that name a plugin: ``{type: sups, variable: confidence}``.

``type`` names the plugin, the other keys are its parameters. The plugin is made when the configuration is read, so
that a wrong name or value is found then; the made object is kept in ``plugin``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, InstanceOf, ValidationInfo, model_serializer, model_validator

from opmon import plugins
from opmon.abc import Plugin
from opmon.config.fields import absolute, folder_of
from opmon.config.parameters import checked, required
from opmon.config.part import Part, at_key, unknown, unknown_key
from opmon.config.redaction import shown
from opmon.errors import PluginError


class Plugged(Part):
    """A plugin by its name, with its parameters, made."""

    kind: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ("type",)
    """The keys that are opmon's, not the plugin's."""
    default_type: ClassVar[str | None] = None

    type: str = Field(min_length=1)
    parameters: dict[str, object] = Field(default_factory=dict, repr=False)
    """As they were given to the plugin; may hold secrets: :meth:`shown` is what may be printed."""
    plugin: InstanceOf[Plugin] = Field(repr=False)

    @model_validator(mode="before")
    @classmethod
    def _make(cls, data: object, info: ValidationInfo) -> object:
        if not isinstance(data, Mapping):
            return data
        own: dict[str, object] = {key: data[key] for key in cls.own if key in data}
        kind = own.setdefault("type", cls.default_type)
        if not isinstance(kind, str):
            raise at_key("type", f"is required: one of {', '.join(plugins.names(cls.kind))}")
        factory = cls._factory(kind)
        given = {str(key): value for key, value in data.items() if key not in cls.own}
        allowed = plugins.parameters(factory)
        for key in given:
            if key not in allowed:
                raise unknown_key(key, [*cls.own, *allowed])
        for key in required(factory):
            if key not in given:
                raise at_key(key, f"is required by {cls.kind} {kind!r}")
        parameters = cls._prepared(factory, checked(factory, given), folder_of(info))
        return {**own, "parameters": parameters, "plugin": _made(cls.kind, kind, parameters)}

    @classmethod
    def _factory(cls, name: str) -> Callable[..., Plugin]:
        if name not in plugins.names(cls.kind):
            raise at_key("type", unknown(name, plugins.names(cls.kind), cls.kind))
        try:
            return plugins.load(cls.kind, name)
        except PluginError as exc:
            raise at_key("type", str(exc)) from exc

    @classmethod
    def _prepared(
        cls, factory: Callable[..., Plugin], parameters: dict[str, object], folder: Path
    ) -> dict[str, object]:
        """The parameters with files and folders of this machine as absolute paths."""
        local = factory.local_paths if isinstance(factory, type) and issubclass(factory, Plugin) else ()
        paths = {key: path for key in local if isinstance(path := parameters.get(key), str | Path)}
        return parameters | {key: type(path)(absolute(str(path), folder)) for key, path in paths.items()}

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, object]:
        """As in the file, with all that is secret hidden."""
        own = {key: getattr(self, key) for key in self.own}
        return {**own, **{key: shown(value, key) for key, value in self.parameters.items()}}


def _made(kind: str, name: str, parameters: dict[str, object]) -> Plugin:
    try:
        return plugins.make(kind, name, parameters)
    except Exception as exc:
        message = str(exc) or type(exc).__name__
        about = next((key for key in parameters if message.split(" ")[0].strip("'\"`:,") == key), None)
        if about is not None:
            raise at_key(about, message.split(" ", 1)[-1]) from exc
        raise ValueError(message) from exc
