"""What all parts of the configuration share: they are frozen, and an unknown key names the nearest valid one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from opmon.wording import meant, nearest


class Part(BaseModel):
    """A group of keys of the configuration."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, validate_default=True
    )
    derived: ClassVar[frozenset[str]] = frozenset()
    """Fields that are filled in, not written by the user."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if isinstance(data, Mapping):
            allowed = [name for name in cls.model_fields if name not in cls.derived]
            for key in data:
                if key not in allowed:
                    raise unknown_key(str(key), allowed)
            return {key: value for key, value in data.items() if value is not None or cls._is_none_meant(key)}
        return data

    @classmethod
    def _is_none_meant(cls, key: str) -> bool:
        """Whether null is a value of the key: for the others a key with nothing after it means its default."""
        field = cls.model_fields[key]
        return field.is_required() or field.default is None


def at_key(key: str, message: str, *deeper: str | int) -> PydanticCustomError:
    """An error that belongs to ``key`` inside the value being validated, or ``deeper`` below it."""
    return PydanticCustomError("at_key", "{message}", {"message": message, "key": key, "deeper": deeper})


def unknown_key(key: str, allowed: Iterable[str]) -> PydanticCustomError:
    """An error that tells the key and not its value, which might be a secret under a mistyped name."""
    return PydanticCustomError("unknown_key", "{message}", {"message": unknown(key, allowed), "key": key})


def unknown(name: str, allowed: Iterable[str], what: str = "key") -> str:
    """
    >>> unknown("bugdet", ["type", "budget"])
    "there is no such key (did you mean 'budget'?); the keys here are: type, budget"
    >>> unknown("sqlite", ["mlflow"], "registry")
    'there is no such registry; the registries here are: mlflow'
    """
    allowed = list(allowed)
    several = f"{what[:-1]}ies" if what.endswith("ry") else f"{what}s"
    hint = meant(nearest(name, allowed, likeness=0.5))
    return f"there is no such {what}{hint}; the {several} here are: {', '.join(allowed) or 'none'}"
