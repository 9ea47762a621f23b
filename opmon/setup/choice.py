"""Keys of a configuration, each with its value and the reason for it, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

_COMMENT_AT = 44


@dataclass(frozen=True)
class Choice:
    """One key below a monitor, what it is set to, and why."""

    key: tuple[str, ...]
    value: Any
    why: str = ""
    guessed: bool = False
    """Whether it is a guess for the user to check: neither the model nor the log says it."""

    def __str__(self) -> str:
        return f"{'.'.join(self.key)}: {_flow(self.value)}{f' ({self.why})' if self.why else ''}"


def nested(choices: Iterable[Choice]) -> dict[str, object]:
    """The choices as the mapping that they make.

    >>> nested([Choice(("columns", "id"), "key"), Choice(("model",), "models:/m/1")])
    {'columns': {'id': 'key'}, 'model': 'models:/m/1'}
    """
    found: dict[str, Any] = {}
    for choice in choices:
        at = found
        for part in choice.key[:-1]:
            at = at.setdefault(part, {})
        at[choice.key[-1]] = choice.value
    return found


def written(choices: Iterable[Choice], indent: int = 0) -> str:
    """The choices as YAML, each with its reason behind it.

    >>> print(written([Choice(("columns", "id"), "key", "200 different ones in 200 rows")]))
    columns:
      id: key                                   # 200 different ones in 200 rows
    """
    known = {choice.key: choice for choice in choices}
    return "\n".join(_lines(nested(known.values()), known, (), indent))


def in_a_comment(text: str) -> str:
    """The text in one line and without signs that YAML does not take: names in a log may hold either.

    >>> in_a_comment("the log has: age, net\\nincome")
    'the log has: age, net income'
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _lines(
    mapping: Mapping[str, object], known: Mapping[tuple[str, ...], Choice], above: tuple[str, ...], indent: int
) -> Iterator[str]:
    for name, value in mapping.items():
        key = (*above, name)
        choice = known.get(key)
        if choice is None:
            yield f"{' ' * indent}{_flow(name)}:"
            assert isinstance(value, Mapping), "what nobody chose holds what somebody chose"
            yield from _lines(value, known, key, indent + 2)
            continue
        text = f"{' ' * indent}{_flow(name)}: {_flow(value)}"
        why = in_a_comment(f"{'guessed: ' if choice.guessed else ''}{choice.why}")
        yield f"{text:<{_COMMENT_AT - 1}} # {why}" if why else text


def _flow(value: object) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1 << 20, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
