"""Configuration as plain values, with where they stand and with the environment references resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opmon.errors import ConfigError

KeyPath = tuple[str | int, ...]

MAX_DEPTH = 40

REFERENCE = re.compile(r"\$?\$\{[^{}\n]*\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass
class Document:
    """The values of a configuration file and where they stand in it."""

    name: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    """What stands in the file, for the values that hold a reference to the environment: the value may be a secret."""
    resolved: dict[str, str] = field(default_factory=dict)
    """The references that were resolved: as written -> the variable's value."""

    def error(self, path: KeyPath, message: str) -> ConfigError:
        """An error that names the file, the line and the key."""
        return ConfigError(f"{self.place(path)}{message}")

    def place(self, path: KeyPath) -> str:
        line = next((self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines), None)
        where = f"{self.name}:{line}: " if self.name and line else f"{self.name}: " if self.name else ""
        return where + (f"{dotted(path)}: " if path else "")


def dotted(path: KeyPath) -> str:
    """
    >>> dotted(("monitors", "digits", "rules", 0, "threshold"))
    'monitors.digits.rules[0].threshold'
    """
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f".{part}" if shown else part
    return shown


def from_mapping(mapping: Mapping[str, object], environment: Mapping[str, str], name: str = "") -> Document:
    """Plain values, as from Python, with their references resolved."""
    document = Document(name=name)
    document.data = _Values(document, environment).mapping(mapping)
    return document


class References:
    """Resolves ``${NAME}`` and ``${NAME:-default}``; ``$${NAME}`` stands for the text ``${NAME}``."""

    def __init__(self, document: Document, environment: Mapping[str, str]) -> None:
        self.document = document
        self.environment = environment

    def resolve(self, reference: str, path: KeyPath) -> str:
        if reference.startswith("$$"):
            return reference[1:]
        name, mark, default = reference[2:-1].partition(":-")
        if not _NAME.match(name):
            raise self.document.error(
                path,
                f"{reference} is no reference; write ${{NAME}} or ${{NAME:-default}}, and $${{…}} for the text itself",
            )
        value = self.environment.get(name)
        if mark and not value:
            value = default
        if value is None:
            raise self.document.error(
                path, f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        self.document.resolved[reference] = value
        return value

    def unterminated(self, text: str, path: KeyPath) -> None:
        if "${" in text:
            raise self.document.error(
                path, "a reference is not closed or stands in another; write ${NAME} or ${NAME:-default}"
            )


class _Values(References):
    """Resolves the references in values that come from Python."""

    def mapping(self, mapping: Mapping[str, object], path: KeyPath = ()) -> dict[str, object]:
        if len(path) > MAX_DEPTH:
            raise self.document.error(path[:3], f"nested deeper than {MAX_DEPTH}")
        return {str(key): self.value(value, (*path, str(key))) for key, value in mapping.items()}

    def value(self, value: object, path: KeyPath) -> object:
        if isinstance(value, Mapping):
            return self.mapping(value, path)
        if isinstance(value, list | tuple):
            return [self.value(inner, (*path, position)) for position, inner in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            self.document.written[path] = value
            self.unterminated(REFERENCE.sub("", value), path)
            return REFERENCE.sub(lambda match: self.resolve(match.group(), path), value)
        return value
