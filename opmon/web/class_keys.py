"""Which key of the keyboard answers with which class."""

from __future__ import annotations

from collections.abc import Sequence

COMMANDS = "cgsuz"
"""Letters with a meaning of their own on the page, where no class is called so."""
_KEYS = "1234567890" + "abdefhijklmnopqrtvwxy"


def keys_of(classes: Sequence[str]) -> list[str | None]:
    """A key for each class: its own name where all are called by one sign, else digits and then letters, in order.

    Where there are more classes than keys, none has one: they are searched for by name.

    >>> keys_of(["0", "1", "2"]), keys_of(["cat", "dog"])
    (['0', '1', '2'], ['1', '2'])
    >>> keys_of([f"class {number}" for number in range(31)])[8:12], set(keys_of([str(number) for number in range(32)]))
    (['9', '0', 'a', 'b'], {None})
    """
    if all(len(name) == 1 and name in "0123456789abcdefghijklmnopqrstuvwxyz" for name in classes):
        return list(classes)
    return [*_KEYS[: len(classes)]] if len(classes) <= len(_KEYS) else [None] * len(classes)
