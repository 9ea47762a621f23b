"""From the text of a condition to its words, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opmon.errors import InputError
from opmon.wording import pointed

LONGEST = 4000
_WORD = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<name>[^\W\d]\w*(?:\.[^\W]\w*|\[\d+\])*)"
    r"|(?P<quoted>`[^`\n]+`)"
    r"|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<sign><=|>=|==|!=|<>|[<>=(),])"
)
_INSTEAD = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or != between two values",
    "~": "write 'not', or like with % for any text",
    "'": "the quote is never closed",
    '"': "the quote is never closed",
    "`": "the backquote is never closed",
    "[": "a list of values stands in parentheses: in ('DE', 'AT')",
    "{": "a list of values stands in parentheses: in ('DE', 'AT')",
    "*": "there is no arithmetic here",
    "/": "there is no arithmetic here",
    "+": "there is no arithmetic here",
    "-": "there is no arithmetic here; a column whose name has a dash stands in backquotes",
    ";": "one condition is enough: join two with and, or",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word: ``kind`` is number, name, quoted (a name in backquotes), text, sign or end."""

    kind: str
    text: str
    start: int

    @property
    def stop(self) -> int:
        return self.start + max(1, len(self.text))


def words_of(text: str) -> list[Word]:
    """The words, and an end after them; a character that belongs to none is an error at its place.

    >>> [word.text for word in words_of("age >= 18 and `zip code` in ('04103')")]
    ['age', '>=', '18', 'and', '`zip code`', 'in', '(', "'04103'", ')', '']
    """
    if len(text) > LONGEST:
        raise InputError(f"a condition has at most {LONGEST:,} characters; this one has {len(text):,}")
    words, at = [], 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        if match.lastgroup != "blank":
            words.append(Word(str(match.lastgroup), match.group(), at))
        at = match.end()
    return [*words, Word("end", "", len(text))]


def refused(text: str, word: Word, message: str) -> InputError:
    """An error that shows the word's place in the condition."""
    return InputError(pointed("the condition", text, word.start, word.stop, message))


def _unreadable(text: str, at: int) -> InputError:
    character = text[at]
    if character.isdigit():
        number = re.match(r"[\w.]+", text[at:])
        assert number is not None
        return refused(text, Word("", number.group(), at), f"{number.group()!r} is no number")
    hint = _INSTEAD.get(character, "a condition has columns, numbers, quoted text, comparisons, and, or, not")
    shown = repr(character) if character.isprintable() else f"the character U+{ord(character):04X}"
    return refused(text, Word("", character, at), f"{shown} has no place here; {hint}")
