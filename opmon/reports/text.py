"""Strings from production, made fit to be shown: what a person typed may hold anything."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

ABSENT = "–"
_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown(value: Any, limit: int = 120) -> str:
    """``value`` on one line of at most ``limit`` characters, without control characters.

    Escaping for HTML is the template's work. Overrides of the writing direction are dropped, so that a value cannot
    rearrange the text around it.

    >>> shown(None), shown("a\\nb"), shown("x" * 9, limit=5), shown(0.1 + 0.2)
    ('–', 'a b', 'xxxx…', '0.3')
    """
    return _cut(_clean(_plain(value, limit), limit), limit)


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.9731), percent(None)
    ('97.3\xa0%', '–')
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``number`` with its noun.

    >>> counted(1, "failure"), counted(12345, "failure")
    ('1 failure', '12,345 failures')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _plain(value: Any, limit: int) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(value):,} bytes"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_cut(str(key), limit // 3)}: {_cut(_plain(item, limit), limit // 3)}"
            for key, item in _first(value.items(), limit)
        )
    if hasattr(value, "tolist"):
        value = value.tolist()
        return _plain(value, limit)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_plain(item, limit) for item in _first(value, limit)) + "]"
    return str(value)


def _first(items: Any, limit: int) -> Any:
    """No more entries than could be shown: a picture as nested lists must not become a megabyte of text."""
    from itertools import islice

    return islice(items, max(limit // 2, 1))


def _clean(text: str, limit: int) -> str:
    kept = (
        " " if character.isspace() or unicodedata.category(character) in ("Cc", "Cs") else character
        for character in text[: 4 * limit]
        if character not in _BIDI_OVERRIDES
    )
    return " ".join("".join(kept).split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
