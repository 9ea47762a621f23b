"""The classes of a model as the configuration names them, and how else each may be spelt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from opmon.errors import InputError
from opmon.spellings import Spellings
from opmon.values import canonical_class


def class_name(value: object) -> object:
    """The name of a class as it is compared: 0 in YAML is the class ``"0"``."""
    if isinstance(value, bool):
        raise ValueError("must be text: put true and false in quotes")
    return canonical_class(value) if isinstance(value, int | float | str) else value


ClassName = Annotated[str, BeforeValidator(class_name)]
Spelt: TypeAlias = tuple[ClassName, ...] | dict[ClassName, tuple[ClassName, ...]] | None


def _listed(value: object) -> object:
    """One spelling of a class need not be in a list."""
    if not isinstance(value, Mapping):
        return value
    listed = {name: () if text is None else text for name, text in value.items()}
    return {name: text if isinstance(text, list | tuple) else (text,) for name, text in listed.items()}


def _distinct(value: Spelt) -> Spelt:
    if value is not None and (len(set(value)) < len(value) or len(value) < 2):
        raise ValueError("must name at least two classes, each once, in the order of the model's output")
    if isinstance(value, Mapping):
        try:
            Spellings.of(value)
        except InputError as exc:
            raise ValueError(f"must tell classes apart: {exc}") from exc
    return value


ClassNames = Annotated[Spelt, BeforeValidator(_listed), AfterValidator(_distinct)]
"""The classes in the order of the model's output; as a mapping, each with its other spellings."""
