"""The words of a question's text, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opmon.errors import InputError
from opmon.wording import pointed

LONGEST = 2000
_WORD = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<name>[^\W\d]\w*(?:-\w+)*)"
    r"|(?P<sign><=|>=|==|!=|[<>=(){},])",
    re.UNICODE,
)
_INSTEAD = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or != between two values",
    "~": "write 'not'",
    "'": "names stand without quotes",
    '"': "names stand without quotes",
    "[": "a list of numbers stands in braces: in {1, 2}",
    ".": "a number may be 0.5, and names have no dots",
    "*": "there is no arithmetic in a query",
    "/": "there is no arithmetic in a query",
    "+": "there is no arithmetic in a query; severity_sum is the sum of all severities",
    "-": "there is no arithmetic in a query",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a question: ``kind`` is number, name, sign or end."""

    kind: str
    text: str
    start: int

    @property
    def stop(self) -> int:
        return self.start + max(1, len(self.text))


def words_of(text: str) -> list[Word]:
    """The words, and an end after them; a character that belongs to none is an error at its place."""
    if len(text) > LONGEST:
        raise InputError(f"a query has at most {LONGEST} characters; this one has {len(text)}: ask it in two")
    words, at = [], 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        if match.lastgroup != "blank":
            words.append(Word(str(match.lastgroup), match.group(), at))
        at = match.end()
    return [*words, Word("end", "", len(text))]


def marked(text: str, start: int, stop: int, message: str) -> InputError:
    """An error with the place in the question under the text."""
    return InputError(pointed("the query", text, start, stop, message))


def _unreadable(text: str, at: int) -> InputError:
    character = text[at]
    if character.isdigit():
        stop = at + len(re.split(r"[^\w.]", text[at:], maxsplit=1)[0])
        return marked(text, at, stop, f"{text[at:stop]!r} is no number")
    hint = _INSTEAD.get(character, "a query has names, numbers, comparisons, and, or, not, and parentheses")
    shown = repr(character) if character.isprintable() else f"the character U+{ord(character):04X}"
    return marked(text, at, at + 1, f"{shown} has no place in a query; {hint}")
