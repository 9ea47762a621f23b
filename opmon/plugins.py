"""Finds what is plugged into opmon, and checks it against its contract in :mod:`opmon.abc`.

A plugin is a class behind an entry point. The built-in ones come through the same door (see ``pyproject.toml``)::

    [project.entry-points."opmon.samplers"]
    srs = "opmon.samplers.srs:SimpleRandom"

Nothing is imported before it is asked for by name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, overload

from opmon import abc
from opmon.errors import InputError, OpmonError, PluginError
from opmon.types import Document
from opmon.wording import did_you_mean, nearest

GROUPS: Mapping[str, str] = {
    "sampler": "opmon.samplers",
    "estimator": "opmon.estimators",
    "source": "opmon.sources",
    "rule": "opmon.rules",
    "action": "opmon.actions",
    "perturbation": "opmon.perturbations",
    "head": "opmon.heads",
    "registry": "opmon.registries",
    "label_provider": "opmon.label_providers",
    "executor": "opmon.executors",
    "judge": "opmon.judges",
    "measure": "opmon.measures",
}
"""What can be plugged in, and the entry-point group it is looked for in."""

CONTRACTS: Mapping[str, type[abc.Plugin]] = {
    "sampler": abc.Sampler,
    "estimator": abc.Estimator,
    "source": abc.Source,
    "rule": abc.Rule,
    "action": abc.Action,
    "perturbation": abc.Perturbation,
    "head": abc.Head,
    "registry": abc.Registry,
    "label_provider": abc.LabelProvider,
    "executor": abc.Executor,
    "judge": abc.Judge,
    "measure": abc.Measure,
}
"""What a plugin of each kind subclasses."""


def names(kind: str) -> list[str]:
    """The names that can be plugged in as ``kind``."""
    return sorted(_registered(kind))


def load(kind: str, name: str) -> Callable[..., abc.Plugin]:
    """What makes the plugin registered as ``name``, or an error that says why there is none."""
    registered = _registered(kind)
    if name not in registered:
        raise PluginError(_unknown(kind, name, registered))
    entry = registered[name]
    try:
        factory: Callable[..., abc.Plugin] = entry.load()
    except OpmonError:
        raise
    except Exception as exc:  # a plugin may fail in any way; all are told the same way
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) cannot be imported: {type(exc).__name__}: {exc}. "
            f"Install what it needs, or remove it from the configuration."
        ) from exc
    if inspect.isclass(factory):
        require_contract(kind, name, factory)
    return factory


@overload
def class_of(kind: Literal["estimator"], name: str) -> type[abc.Estimator]: ...
@overload
def class_of(kind: Literal["action"], name: str) -> type[abc.Action]: ...
@overload
def class_of(kind: Literal["rule"], name: str) -> type[abc.Rule]: ...
@overload
def class_of(kind: Literal["head"], name: str) -> type[abc.Head]: ...
@overload
def class_of(kind: Literal["measure"], name: str) -> type[abc.Measure]: ...
@overload
def class_of(kind: Literal["registry"], name: str) -> type[abc.Registry]: ...
def class_of(kind: str, name: str) -> type[abc.Plugin]:
    """The class registered as ``name``, for the facts that stand in it."""
    factory = load(kind, name)
    if not (isinstance(factory, type) and issubclass(factory, abc.Plugin)):
        raise PluginError(f"{kind} {name!r} ({_registered(kind)[name].value}) is no class, as a {kind} must be")
    return factory


@overload
def make(kind: Literal["sampler"], name: str, arguments: Document | None = None) -> abc.Sampler: ...
@overload
def make(kind: Literal["estimator"], name: str, arguments: Document | None = None) -> abc.Estimator: ...
@overload
def make(kind: Literal["source"], name: str, arguments: Document | None = None) -> abc.Source: ...
@overload
def make(kind: Literal["rule"], name: str, arguments: Document | None = None) -> abc.Rule: ...
@overload
def make(kind: Literal["action"], name: str, arguments: Document | None = None) -> abc.Action: ...
@overload
def make(kind: Literal["perturbation"], name: str, arguments: Document | None = None) -> abc.Perturbation: ...
@overload
def make(kind: Literal["head"], name: str, arguments: Document | None = None) -> abc.Head: ...
@overload
def make(kind: Literal["registry"], name: str, arguments: Document | None = None) -> abc.Registry: ...
@overload
def make(kind: Literal["label_provider"], name: str, arguments: Document | None = None) -> abc.LabelProvider: ...
@overload
def make(kind: Literal["executor"], name: str, arguments: Document | None = None) -> abc.Executor: ...
@overload
def make(kind: Literal["judge"], name: str, arguments: Document | None = None) -> abc.Judge: ...
@overload
def make(kind: Literal["measure"], name: str, arguments: Document | None = None) -> abc.Measure: ...
@overload
def make(kind: str, name: str, arguments: Document | None = None) -> abc.Plugin: ...
def make(kind: str, name: str, arguments: Document | None = None) -> abc.Plugin:
    """An instance of what is registered as ``name``, made with ``arguments``."""
    return made(kind, name, load(kind, name), arguments)


def made(kind: str, name: str, factory: Callable[..., abc.Plugin], arguments: Document | None = None) -> abc.Plugin:
    """An instance by ``factory``, checked; ``name`` is what errors call it."""
    arguments = dict(arguments or {})
    allowed = parameters(factory)
    for given in arguments:
        if given not in allowed:
            hint = did_you_mean(nearest(given, allowed))
            raise InputError(
                f"{kind} {name!r} has no parameter {given!r}; it has: {', '.join(allowed) or 'none'}.{hint}"
            )
    own = {written(each): each for each in _names_of(factory)}
    try:
        plugin = factory(**{own[given]: value for given, value in arguments.items()})
    except OpmonError:
        raise
    except (TypeError, ValueError) as exc:
        raise InputError(f"{kind} {name!r}: {exc}") from exc
    require_contract(kind, name, type(plugin))
    if isinstance(plugin, abc.Sampler):
        _require_levels(plugin)
    return plugin


def _require_levels(sampler: abc.Sampler) -> None:
    levels: object = sampler.activation_levels
    if levels is not None and (isinstance(levels, bool) or not isinstance(levels, int) or not 2 <= levels <= 256):
        raise PluginError(
            f"{type(sampler).__name__}.activation_levels is a whole number in 2..256, or None; got {levels!r}"
        )


def require_contract(kind: str, name: str, made: type) -> None:
    """An error that names what a plugin lacks of the contract of its kind."""
    contract = CONTRACTS.get(kind)
    if contract is None:
        return
    about = f"{kind} {name!r} ({made.__module__}:{made.__qualname__})"
    said = f"opmon.abc.{contract.__name__} says what a plugin of this kind does"
    keeps = issubclass(made, contract)
    lacking = _abstract(made) if keeps else _abstract(contract) - set(dir(made))
    if lacking:
        raise PluginError(f"{about} has no method {' and no method '.join(sorted(lacking))}; {said}")
    if not keeps:
        raise PluginError(f"{about} must subclass opmon.abc.{contract.__name__}, which gives its other hooks; {said}")


def _abstract(made: type) -> frozenset[str]:
    return getattr(made, "__abstractmethods__", frozenset())


def parameters(factory: Callable[..., object]) -> list[str]:
    """The parameters of a plugin, as they are written in a configuration."""
    return [written(name) for name in _names_of(factory)]


def written(name: str) -> str:
    """A parameter as it is written in a configuration: Python keeps some words for itself.

    >>> written("class_"), written("budget")
    ('class', 'budget')
    """
    return name.removesuffix("_")


def _names_of(factory: Callable[..., object]) -> list[str]:
    if dataclasses.is_dataclass(factory):
        return [f.name for f in dataclasses.fields(factory) if f.init]
    return [name for name in inspect.signature(factory).parameters if name != "self"]


@functools.cache
def _registered(kind: str) -> dict[str, EntryPoint]:
    group = GROUPS.get(kind)
    if group is None:
        raise PluginError(f"there is no kind of plugin {kind!r}; the kinds are: {', '.join(GROUPS)}")
    return {entry.name: entry for entry in entry_points(group=group)}


def _unknown(kind: str, name: str, registered: Mapping[str, EntryPoint]) -> str:
    hint = did_you_mean(nearest(name, registered))
    have = ", ".join(sorted(registered)) or "none (is opmon installed? run: pip install opmon)"
    return f"there is no {kind} {name!r}; there are: {have}.{hint}"
