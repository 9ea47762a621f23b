"""The parameters of a plugin, as its own type hints want them."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from opmon.config.part import at_key
from opmon.config.problems import words
from opmon.plugins import written


def checked(factory: Callable[..., object], given: dict[str, object]) -> dict[str, object]:
    """The parameters as the plugin's own type hints want them; what has no usable hint is left as it is."""
    try:
        hints = {written(name): hint for name, hint in _hints(factory).items()}
    except (NameError, TypeError, AttributeError):
        return given
    return {key: _converted(key, value, hints[key]) if key in hints else value for key, value in given.items()}


@functools.cache
def _hints(factory: Callable[..., object]) -> dict[str, object]:
    return typing.get_type_hints(factory if not inspect.isclass(factory) else _hinted(factory))


def required(factory: Callable[..., object]) -> list[str]:
    """The parameters that a plugin cannot be made without."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [written(each.name) for each in parameters if each.default is each.empty and each.kind not in variadic]


def _hinted(factory: type) -> Callable[..., object]:
    """What carries the hints of a class: itself where it is a dataclass, otherwise its ``__init__``."""
    return factory if hasattr(factory, "__dataclass_fields__") else factory.__init__  # type: ignore[misc]


def _adapter(hint: Any) -> TypeAdapter[object]:
    """What checks a value against a type hint; a hint is whatever pydantic takes for one."""
    try:
        return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True))
    except (PydanticUserError, TypeError):
        return TypeAdapter(hint)  # a model of pydantic's own takes no configuration from elsewhere


def _converted(key: str, value: object, hint: object) -> object:
    try:
        adapter = _adapter(hint)
    except (PydanticUserError, TypeError):
        return value
    try:
        return adapter.validate_python(value, strict=True if isinstance(value, bool) else None)
    except ValidationError as exc:
        raise at_key(key, words(exc.errors(include_url=False)[-1])) from None
