"""From the words of a condition to what it asks of a row, by recursive descent over the package's grammar."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.errors import InputError
from opmon.grammar import Word
from opmon.where.conditions import (
    SIGNS,
    Both,
    Column,
    Compared,
    Condition,
    Constant,
    Either,
    Empty,
    Like,
    Not,
    OneOf,
    Value,
    Where,
)
from opmon.where.words import CONDITION

DEEPEST = 40
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "like", "true", "false"})


def parse(text: object) -> Where:
    """The condition that ``text`` says; an error marks its place in it.

    >>> parse("country == 'DE' and version != 'shadow'").columns
    ('country', 'version')
    """
    if not isinstance(text, str):
        raise InputError(f"a condition is text, such as country == 'DE'; got {type(text).__name__}")
    if not text.strip():
        raise InputError("the condition is empty; say for example: country == 'DE', or leave it out")
    reader = _Reader(text, CONDITION.words(text))
    condition = reader.condition()
    if reader.word.kind != "end":
        raise reader.refused(f"{reader.word.text!r} is not expected here; join two conditions with and, or")
    return Where(text, condition)


@dataclass
class _Reader:
    text: str
    words: list[Word]
    at: int = 0
    depth: int = 0

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def refused(self, message: str, word: Word | None = None) -> InputError:
        return CONDITION.refused(self.text, word or self.word, message)

    def next(self) -> Word:
        word = self.word
        self.at += word.kind != "end"
        return word

    def takes(self, keyword: str) -> bool:
        """Whether the next word is this keyword or sign; it is passed if it is."""
        is_it = self.word.kind in ("name", "sign") and self.word.text.casefold() == keyword
        self.at += is_it
        return is_it

    def require(self, keyword: str, message: str) -> None:
        if not self.takes(keyword):
            raise self.refused(message)

    def condition(self) -> Condition:
        parts = [self.both()]
        while self.takes("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def both(self) -> Condition:
        parts = [self.denied()]
        while self.takes("and"):
            parts.append(self.denied())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def denied(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refused(f"nested deeper than {DEEPEST}")
        try:
            if self.takes("not"):
                return Not(self.denied())
            opened = self.word
            if self.takes("("):
                inner = self.condition()
                if self.word.kind == "end":
                    raise self.refused("this parenthesis is never closed", opened)
                self.require(")", f"{self.word.text!r} is not expected here; a closing parenthesis or and, or is")
                return inner
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Condition:
        first = self.word
        left = self.value()
        if self.word.text in SIGNS:
            sign = self.next().text
            right = self.value()
            if isinstance(left, Constant) and isinstance(right, Constant):
                raise self.refused("two constants are compared; one side must be a column", first)
            return Compared(left, sign, right)
        denied = self.takes("not")
        column = self.column(left, first)
        if self.takes("in"):
            inner: Condition = OneOf(column, self.constants())
        elif self.takes("like"):
            if self.word.kind != "text":
                raise self.refused("quoted text follows 'like', such as like 'web-%'")
            inner = Like(column, str(self.constant().value))
        elif not denied and self.takes("is"):
            denied = self.takes("not")
            self.require("null", "'null' or 'not null' follows 'is'; write == to compare with a value")
            inner = Empty(column)
        else:
            raise self.refused(f"a comparison is missing after {first.text!r}, such as == 'DE', or in ('DE', 'AT')")
        return Not(inner) if denied else inner

    def column(self, value: Value, word: Word) -> Column:
        if isinstance(value, Column):
            return value
        raise self.refused("a column stands on the left", word)

    def constants(self) -> tuple[Constant, ...]:
        self.require("(", "values in parentheses follow 'in', such as in ('DE', 'AT')")
        values = [self.constant()]
        while self.takes(","):
            values.append(self.constant())
        self.require(")", "a comma or a closing parenthesis is missing here")
        return tuple(values)

    def constant(self) -> Constant:
        word, value = self.word, self.value()
        if isinstance(value, Constant):
            return value
        raise self.refused(f"a value is expected here, not a column; text stands in quotes: '{word.text}'", word)

    def value(self) -> Value:
        word = self.word
        name = word.text.casefold()
        if word.kind == "end":
            raise self.refused("the condition ends here, and a column or a value is missing")
        if word.kind == "name" and name in ("true", "false"):
            self.next()
            return Constant(name == "true")
        if word.kind == "name" and name == "null":
            raise self.refused("nothing is equal to null; write: is null, or is not null")
        if word.kind == "sign" or (word.kind == "name" and name in _KEYWORDS):
            raise self.refused(f"a column or a value is expected here, not {word.text!r}")
        self.next()
        if word.kind == "number":
            return Constant(float(word.text) if set(word.text) & set(".eE") else int(word.text))
        if word.kind == "text":
            quote = word.text[0]
            return Constant(word.text[1:-1].replace(2 * quote, quote))
        return Column(word.text.strip("`"))
