"""What is wrong with rows of text, found in their bytes before a parser sees them: it may not live through them."""

from __future__ import annotations

import re

import numpy as np

from opmon.sources._lines import Block

MOST_LEVELS = 100
"""So deep may objects and lists be nested. Arrow's JSON parser ends the process somewhere beyond a few thousand."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_NEWLINE, _RETURN = 10, 13


def no_text(block: Block) -> dict[int, str]:
    """The rows that are not UTF-8, hold a NUL byte, or are too long to be read."""
    if block.too_long:
        return {0: "the row is longer than max_row_bytes. Is a quote not closed, or is this not a text file?"}
    flaws = _not_utf8(block)
    if b"\0" in block.data:
        letters = np.frombuffer(block.data, np.uint8)
        at = np.searchsorted(block.ends, np.flatnonzero(letters == 0), side="right")
        flaws |= dict.fromkeys(at[at < len(block.ends)].tolist(), "a NUL byte: this is not text (it must be UTF-8)")
    return flaws


def no_object(block: Block) -> dict[int, str]:
    """The rows that are no JSON object: these begin with a brace, end with one, and are not nested too deeply.

    As each row begins and ends with a brace, no parser takes what one of them leaves open for the beginning of the
    next one's nesting.
    """
    letters = np.frombuffer(block.data, np.uint8)
    last = block.ends - 1
    for _ in range(2):
        last = last - ((letters[last] == _NEWLINE) | (letters[last] == _RETURN))
    braced = (letters[block.starts] == ord("{")) & (letters[last] == ord("}"))
    opens = letters == ord("{")
    if b"[" in block.data:
        opens |= letters == ord("[")
    if np.count_nonzero(opens) - np.count_nonzero(braced) < MOST_LEVELS:  # beside the one that each row begins with
        many = np.zeros(len(braced), dtype=bool)
    else:
        opened = np.flatnonzero(opens)
        many = np.searchsorted(opened, block.ends) - np.searchsorted(opened, block.starts) > MOST_LEVELS
    flaws = {}
    for row in np.flatnonzero(~braced | many).tolist():
        text = block.data[int(block.starts[row]) : int(block.ends[row])].strip()
        if not (text.startswith(b"{") and text.endswith(b"}")):
            flaws[row] = f'a line must be a JSON object such as {{"id": 1}}; got {_short(text)}'
        elif many[row] and nested(text) > MOST_LEVELS:
            flaws[row] = f"objects and lists are nested more than {MOST_LEVELS} levels deep"
    return flaws


def nested(text: bytes) -> int:
    """How deep objects and lists are nested in a row of JSON.

    >>> nested(b'{"a": [1, {"b]]": []}], "c": "[[[[["}')
    4
    """
    brackets = np.frombuffer(_STRING.sub(b"", text).translate(None, _NOT_BRACKETS), np.uint8)
    opening = (brackets | 32) == ord("{")
    return int(np.cumsum(np.where(opening, 1, -1).astype(np.int32)).max(initial=0))


def _not_utf8(block: Block) -> dict[int, str]:
    if block.data.isascii():
        return {}
    try:
        block.data.decode()
        return {}
    except UnicodeDecodeError:
        pass
    flaws = {}
    for row, (start, end) in enumerate(zip(block.starts.tolist(), block.ends.tolist(), strict=True)):
        try:
            block.data[start:end].decode()
        except UnicodeDecodeError as exc:
            flaws[row] = f"the row is not UTF-8: byte 0x{exc.object[exc.start]:02x}. Write the file in UTF-8."
    return flaws


def _short(text: bytes) -> str:
    shown = text[:41].decode(errors="backslashreplace")
    return shown if len(text) <= 40 else f"{shown[:37]}..."
