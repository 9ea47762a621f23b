"""The parts of a monitor that name a plugin: ``{type: sups, variable: confidence}``.

``type`` names the plugin, the other keys are its parameters. The plugin is made when the configuration is read, so
that a wrong name or value is found then; the made object is kept in ``plugin``.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from opmon import plugins
from opmon.abc import Plugin, Rule
from opmon.config.fields import Count, Duration, absolute, folder_of
from opmon.config.part import Part, at_key, unknown, unknown_key
from opmon.config.problems import words
from opmon.config.redaction import shown
from opmon.durations import show_duration
from opmon.errors import PluginError
from opmon.triggers.silence import Silence


class Plugged(Part):
    """A plugin by its name, with its parameters, made."""

    kind: ClassVar[str]
    own: ClassVar[tuple[str, ...]] = ("type",)
    """The keys that are opmon's, not the plugin's."""
    default_type: ClassVar[str | None] = None

    type: str = Field(min_length=1)
    parameters: dict[str, Any] = Field(default_factory=dict, repr=False)
    """As they were given to the plugin; may hold secrets: :meth:`shown` is what may be printed."""
    plugin: Any = Field(default=None, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _make(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping):
            return data
        own = {key: data[key] for key in cls.own if key in data}
        kind = own.setdefault("type", cls.default_type)
        if not isinstance(kind, str):
            raise at_key("type", f"is required: one of {', '.join(plugins.names(cls.kind))}")
        factory = cls._factory(kind)
        given = {str(key): value for key, value in data.items() if key not in cls.own}
        allowed = plugins.parameters(factory)
        for key in given:
            if key not in allowed:
                raise unknown_key(key, [*cls.own, *allowed])
        for key in _required(factory):
            if key not in given:
                raise at_key(key, f"is required by {cls.kind} {kind!r}")
        parameters = cls._prepared(factory, _checked(factory, given), folder_of(info))
        return {**own, "parameters": parameters, "plugin": _made(cls.kind, kind, parameters)}

    @classmethod
    def _factory(cls, name: str) -> Callable[..., Any]:
        if name not in plugins.names(cls.kind):
            raise at_key("type", unknown(name, plugins.names(cls.kind), cls.kind))
        try:
            return plugins.load(cls.kind, name)
        except PluginError as exc:
            raise at_key("type", str(exc)) from exc

    @classmethod
    def _prepared(cls, factory: Callable[..., Any], parameters: dict[str, Any], folder: Path) -> dict[str, Any]:
        """The parameters with files and folders of this machine as absolute paths."""
        local = factory.local_paths if isinstance(factory, type) and issubclass(factory, Plugin) else ()
        given = {key: parameters[key] for key in local if isinstance(parameters.get(key), str | Path)}
        return parameters | {key: type(path)(absolute(str(path), folder)) for key, path in given.items()}

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, Any]:
        """As in the file, with all that is secret hidden."""
        own = {key: getattr(self, key) for key in self.own}
        return {**own, **{key: shown(value, key) for key, value in self.parameters.items()}}


class SamplerSettings(Plugged):
    """Which inputs are worth a label, and how many of them in a round."""

    kind = "sampler"
    own = ("type", "budget")
    budget: Count = 100


class SourceSettings(Plugged):
    """Where production logs its inputs."""

    kind = "source"
    default_type = "files"


class RegistrySettings(Plugged):
    """What holds the models, where that is not MLflow."""

    kind = "registry"


class ProviderSettings(Plugged):
    """Who is handed the tasks and brings back the answers."""

    kind = "label_provider"
    default_type = "files"


class ExecutorSettings(Plugged):
    """Where the jobs of a round run: a type alone, or with its parameters."""

    kind = "executor"
    default_type = "local"

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        return {"type": data} if isinstance(data, str) else data


class HeadSettings(Plugged):
    """An auxiliary variable that is computed in the model's graph: its name, or its type, name and parameters."""

    kind = "head"
    own = ("type", "name")
    name: str = Field(default="", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,49}$")
    """What the variable is called; the type, where nothing is given."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"type": data}
        return {"name": data.get("type"), **data} if isinstance(data, Mapping) else data


class RuleSettings(Plugged):
    """What makes an alarm.

    With ``mode: advise`` its events are kept and shown, and no action hears of them. For the time of ``cooldown`` after
    an alarm the next one waits, and is withdrawn where it is over before.
    """

    kind = "rule"
    own = ("type", "mode", "cooldown")
    mode: Literal["advise", "act"] = "act"
    cooldown: Duration | None = None

    @property
    def acts(self) -> bool:
        """Whether actions are told of what it raises."""
        return self.mode == "act" and not self.rule.advisory

    @property
    def rule(self) -> Rule:
        """The rule that was made."""
        made: Rule = self.plugin
        return made

    @property
    def identity(self) -> dict[str, Any]:
        """What makes it this rule and no other: its type, whether it acts, and every parameter but the name.

        Evidence belongs to one identity: with another threshold or another bound it is another rule that begins anew.
        """
        values = self.parameters
        if dataclasses.is_dataclass(self.plugin):
            values = {each.name: getattr(self.plugin, each.name) for each in dataclasses.fields(self.plugin)}
        told = {key: shown(value, key) for key, value in values.items() if key != "name"}
        identity: dict[str, Any] = json.loads(json.dumps({"type": self.type, "acts": self.acts, **told}, default=str))
        return identity

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, Any]:
        """As in the file; the own keys where they are not the default."""
        found: dict[str, Any] = {"type": self.type}
        if self.mode != "act":
            found["mode"] = self.mode
        if self.cooldown is not None:
            found["cooldown"] = show_duration(self.cooldown)
        return {**found, **{key: shown(value, key) for key, value in self.parameters.items()}}

    @property
    def name(self) -> str:
        return self.rule.name


class ActionSettings(Plugged):
    """What is done on an alarm."""

    kind = "action"
    own = ("type", "name", "silence")
    name: str = ""
    """What its deliveries are known by; the type, where nothing is given."""
    silence: tuple[str, ...] = ()
    """Windows in which it waits, such as ``mon-fri 22:00-07:00 Europe/Berlin``."""

    @field_validator("silence", mode="before")
    @classmethod
    def _windows(cls, value: Any) -> Any:
        given = [value] if isinstance(value, str) else value
        for window in given if isinstance(given, list | tuple) else ():
            Silence.parse(window)
        return given

    @property
    def windows(self) -> tuple[Silence, ...]:
        return tuple(Silence.parse(window) for window in self.silence)

    @model_serializer(mode="plain")
    def shown(self) -> dict[str, Any]:
        """As in the file, with all that is secret hidden."""
        own: dict[str, Any] = {"type": self.type, "name": self.name}
        if self.silence:
            own["silence"] = list(self.silence)
        return {**own, **{key: shown(value, key) for key, value in self.parameters.items()}}

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, data: Any) -> Any:
        return {"name": data.get("type"), **data} if isinstance(data, Mapping) else data


def _checked(factory: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The parameters as the plugin's own type hints want them; what has no usable hint is left as it is."""
    try:
        hints = _hints(factory)
    except (NameError, TypeError, AttributeError):
        return given
    return {key: _converted(key, value, hints[key]) if key in hints else value for key, value in given.items()}


@functools.cache
def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(factory if not inspect.isclass(factory) else _hinted(factory))


def _required(factory: Callable[..., Any]) -> list[str]:
    try:
        found = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in found if each.default is each.empty and each.kind not in variadic]


def _hinted(factory: type) -> Any:
    return factory if hasattr(factory, "__dataclass_fields__") else factory.__init__  # type: ignore[misc]


def _converted(key: str, value: Any, hint: Any) -> Any:
    try:
        adapter = TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True))
    except (PydanticUserError, TypeError):
        try:
            adapter = TypeAdapter(hint)
        except (PydanticUserError, TypeError):
            return value
    try:
        return adapter.validate_python(value, strict=True if isinstance(value, bool) else None)
    except ValidationError as exc:
        raise at_key(key, words(exc.errors(include_url=False)[-1])) from None


def _made(kind: str, name: str, parameters: dict[str, Any]) -> Any:
    try:
        return plugins.make(kind, name, parameters)
    except Exception as exc:
        message = str(exc) or type(exc).__name__
        about = next((key for key in parameters if message.split(" ")[0].strip("'\"`:,") == key), None)
        if about is not None:
            raise at_key(about, message.split(" ", 1)[-1]) from exc
        raise ValueError(message) from exc
