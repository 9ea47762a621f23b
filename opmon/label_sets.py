"""Several classes at once, and none of them too, as one text: a JSON list of their names, in the order of the alphabet.

Two such texts are equal where the sets are. They are read from lists, from JSON, from names with ``;``, ``|`` or commas
between them, from an object that says yes or no for each name, and from a list of 0 and 1, one for each class in their
order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from opmon.errors import InputError
from opmon.spellings import AS_SPELT, Spellings
from opmon.values import canonical_class

EMPTY = "[]"
"""None of the classes, which is an answer."""
NONE_OF_THEM = frozenset(("[]", "{}", "none", "none of them", "-"))
_MARKS = (";", "|", "\n", ",")
_LONGEST = 100_000
_YES_OR_NO = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
_PRINTED = re.compile(r"\[?\s*[01]\.?(?:\s+[01]\.?)+\s*\]?")
"""As NumPy prints an array of 0 and 1."""


def text_of(names: Iterable[str]) -> str:
    """The text of a set.

    >>> text_of(["dog", "cat", "dog"]), text_of([])
    ('["cat", "dog"]', '[]')
    """
    return json.dumps(sorted(set(names)), ensure_ascii=False)


def members(text: str) -> tuple[str, ...]:
    """The classes in a text that :func:`text_of` or :func:`read` gave.

    >>> members('["cat", "dog"]')
    ('cat', 'dog')
    """
    return tuple(json.loads(text))


def shown(text: str) -> str:
    """A set as people read it.

    >>> shown('["cat", "dog"]'), shown("[]")
    ('cat, dog', 'none of them')
    """
    return ", ".join(members(text)) or "none of them"


def read(said: object, classes: Collection[str] | None = None, spellings: Spellings = AS_SPELT) -> str:
    """The set that somebody says; ``classes`` are those there are, where they are known.

    A text that is itself a class is that class, whatever marks are in it. ``none`` is the empty set, where no class is
    called so.

    >>> read("dog; cat"), read('["dog"]'), read({"cat": True, "dog": 0}), read("none"), read("")
    ('["cat", "dog"]', '["dog"]', '["cat"]', '[]', '[]')
    >>> read([0, 1, 1], ["cat", "dog", "cow"]), read("0,0,0", ["cat", "dog", "cow"])
    ('["cow", "dog"]', '[]')
    >>> read("cat;cow", ["cat", "dog"])
    Traceback (most recent call last):
    opmon.errors.InputError: asks for some of the classes cat, dog, or none; 'cow' is none of them
    """
    names = parsed(said, classes, spellings)
    stray = None if classes is None else next((name for name in names if name not in classes), None)
    if stray is not None:
        listed = list(classes or ())
        have = ", ".join(listed[:12]) + (", …" if len(listed) > 12 else "")
        raise InputError(f"asks for some of the classes {have}, or none; {stray[:60]!r} is none of them")
    return text_of(names)


def parsed(said: object, classes: Collection[str] | None = None, spellings: Spellings = AS_SPELT) -> list[str]:
    """The names that somebody says, also those of no class.

    >>> parsed("dog; cow", ["cat", "dog"])
    ['dog', 'cow']
    """
    return [_name(each, spellings) for each in _parts(said, classes, spellings)]


def _parts(said: object, classes: Collection[str] | None, spellings: Spellings) -> list[object]:
    if isinstance(said, str):
        return _of_text(said.strip(), classes, spellings)
    if isinstance(said, Mapping):
        return [name for name, holds in said.items() if _holds(name, holds)]
    if isinstance(said, list | tuple):
        return _of_list(list(said), classes, spellings)
    if isinstance(said, set | frozenset):
        return list(said)
    return [said]


def _of_list(said: list[object], classes: Collection[str] | None, spellings: Spellings) -> list[object]:
    """The names in a list, or those that a list of 0 and 1 says yes to.

    Classes may be called 0 and 1 themselves: of three or more, a list with one of these for each class is no list of
    names, which would hold some twice.
    """
    held = [_YES_OR_NO.get(str(each).strip().lower()) for each in said]
    if not said or None in held:
        return said
    twice = len(set(held)) < len(held)
    if not isinstance(classes, Sequence):
        if twice and not classes:
            raise InputError(
                f"asks for the names of classes; a list of {len(held)} zeros and ones does not say them: write them "
                "under 'classes', in the order of the list"
            )
        return said
    are_names = any(_name(each, spellings) in classes for each in said)
    if len(held) == len(classes) and (len(held) > 2 or not are_names):
        return [name for name, holds in zip(classes, held, strict=True) if holds]
    if twice and not are_names:
        raise InputError(
            f"asks for some of {len(classes)} classes; a list of {len(held)} zeros and ones must have one for each, in "
            "the order of 'classes'"
        )
    return said


def _of_text(text: str, classes: Collection[str] | None, spellings: Spellings) -> list[object]:
    if not text:
        return []
    if classes is not None and _name(text, spellings) in classes:
        return [text]
    if text.lower() in NONE_OF_THEM:
        return []
    if text[0] in "[{" and len(text) <= _LONGEST:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, list | dict):
            return _parts(document, classes, spellings)
    if _PRINTED.fullmatch(text):
        return _of_list([each.rstrip(".") for each in text.strip("[]").split()], classes, spellings)
    mark = next((mark for mark in _MARKS if mark in text), None)
    if mark is None:
        return [text]
    return _of_list([part for part in text.split(mark) if part.strip()], classes, spellings)


def _holds(name: object, value: object) -> bool:
    """Whether an object says that a class holds: true, 1, yes; not a score."""
    plain = str(value).strip().lower()
    if plain in ("true", "1", "1.0", "yes"):
        return True
    if plain in ("false", "0", "0.0", "no", "none", ""):
        return False
    raise InputError(f"asks for classes, each with true or false; {str(name)[:60]!r} has {plain[:60]!r}")


def _name(value: object, spellings: Spellings) -> str:
    try:
        return spellings.name(canonical_class(value))
    except InputError as exc:
        raise InputError(f"asks for the names of classes; {exc}") from exc
