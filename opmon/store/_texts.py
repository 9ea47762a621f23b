"""Texts as every database takes them.

PostgreSQL has no text with a zero byte in it, and no database one with half of a surrogate pair. What a program
printed, a plugin said or the log holds may have either: a space is put in their place, so that no transaction fails.
"""

from __future__ import annotations

import re

HALVES = re.compile("[\ud800-\udfff]")
NOT_TAKEN = re.compile("[\0\ud800-\udfff]")
"""What PostgreSQL does not take. SQLite holds zero bytes, and finds what was written with them."""


def taken(value: object, not_taken: re.Pattern[str] = NOT_TAKEN) -> object:
    r"""A value, or the values of a statement, with spaces in the place of what a database does not take.

    >>> taken([{"why": "a\0b", "at": 1}, {"why": "c"}]), taken(("\0", "\ud800"), HALVES)
    ([{'why': 'a b', 'at': 1}, {'why': 'c'}], ('\x00', ' '))
    """
    return _without(value, not_taken) if _holds(value, not_taken) else value


def _holds(value: object, not_taken: re.Pattern[str]) -> bool:
    if isinstance(value, str):
        return not (value.isascii() and "\0" not in value) and not_taken.search(value) is not None
    if isinstance(value, dict):
        return any(_holds(each, not_taken) for each in value.values())
    return isinstance(value, list | tuple) and any(_holds(each, not_taken) for each in value)


def _without(value: object, not_taken: re.Pattern[str]) -> object:
    if isinstance(value, str):
        return not_taken.sub(" ", value)
    if isinstance(value, dict):
        return {key: _without(each, not_taken) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, not_taken) for each in value]
    return tuple(_without(each, not_taken) for each in value) if isinstance(value, tuple) else value
