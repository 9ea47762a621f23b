"""The words of a text that a user writes, each with its place: what the small grammars of opmon are read from.

A character that belongs to no word is an error that shows its place and says what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opmon.errors import InputError
from opmon.wording import pointed

BLANK = r"(?P<blank>\s+)"
NUMBER = r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
NO_ARITHMETIC = "there is no arithmetic here"
INSTEAD: Mapping[str, str] = {
    "&": "write 'and'",
    "|": "write 'or'",
    "~": "write 'not'",
    "!": "write 'not', or != between two values",
    "*": NO_ARITHMETIC,
    "/": NO_ARITHMETIC,
    "+": NO_ARITHMETIC,
    "-": NO_ARITHMETIC,
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word: ``kind`` is the group of the pattern that it matched, or end."""

    kind: str
    text: str
    start: int

    @property
    def stop(self) -> int:
        return self.start + max(1, len(self.text))


@dataclass(frozen=True)
class Grammar:
    """The words of one kind of text.

    >>> sums = Grammar("a sum", re.compile(f"{BLANK}|{NUMBER}|(?P<sign>[=])"), 100, "a sum has numbers", {})
    >>> [word.text for word in sums.words("1 = 1.0")]
    ['1', '=', '1.0', '']
    """

    what: str
    """What the text is, such as ``a query``."""
    pattern: re.Pattern[str]
    """Any one word, as a named group; blanks are the group ``blank``."""
    longest: int
    """The most characters of a text."""
    holds: str
    """What a text may hold, in words."""
    instead: Mapping[str, str]
    """What to write instead of a character that belongs to no word, where it is not as in ``INSTEAD``."""

    def words(self, text: str) -> list[Word]:
        """The words, and an end after them."""
        if len(text) > self.longest:
            raise InputError(f"{self.what} has at most {self.longest:,} characters; this one has {len(text):,}")
        words, at = [], 0
        while at < len(text):
            match = self.pattern.match(text, at)
            if match is None:
                raise self._unreadable(text, at)
            if match.lastgroup != "blank":
                words.append(Word(str(match.lastgroup), match.group(), at))
            at = match.end()
        return [*words, Word("end", "", len(text))]

    def refused(self, text: str, word: Word, message: str) -> InputError:
        """An error that shows the word's place in the text."""
        what = self.what.partition(" ")[2]
        return InputError(pointed(f"the {what}", text, word.start, word.stop, message))

    def _unreadable(self, text: str, at: int) -> InputError:
        character = text[at]
        if character.isdigit():
            number = re.split(r"[^\w.]", text[at:], maxsplit=1)[0]
            return self.refused(text, Word("", number, at), f"{number!r} is no number")
        hint = self.instead.get(character) or INSTEAD.get(character) or self.holds
        shown = repr(character) if character.isprintable() else f"the character U+{ord(character):04X}"
        return self.refused(text, Word("", character, at), f"{shown} has no place in {self.what}; {hint}")
