"""Strings from production, made safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from opmon import wording
from opmon.wording import ABSENT

T = TypeVar("T")
_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown(value: object, limit: int = 120) -> str:
    """``value`` on one line of at most ``limit`` characters, without control characters.

    Escaping for HTML is the template's work. Overrides of the writing direction are dropped, so that a value cannot
    rearrange the text around it.

    >>> shown(None), shown("a\\nb"), shown("x" * 9, limit=5), shown(0.1 + 0.2), shown(1234567.89)
    ('–', 'a b', 'xxxx…', '0.3', '1234568')
    """
    return _cut(_clean(_plain(value, limit), limit), limit)


def percent(value: float | None, digits: int = 1) -> str:
    """A share in per cent as a table or page has it: ``digits`` decimals, more near none and all.

    >>> percent(0.9731), percent(0.9), percent(0.99953), percent(None)
    ('97.3 %', '90.0 %', '99.95 %', '–')
    """
    told = digits if value is None or digits == 0 else max(digits, wording.share_digits(value))
    return wording.percent(value, told)


def number(value: float | None, unit: str = "") -> str:
    """A number with its unit.

    >>> number(3.25, "days"), number(None)
    ('3.25 days', '–')
    """
    return ABSENT if value is None else f"{wording.number(value)} {unit}".rstrip()


def _plain(value: object, limit: int) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return wording.counting(value)
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


def _first(items: Iterable[T], limit: int) -> Iterator[T]:
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
