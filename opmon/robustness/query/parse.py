"""The parser of questions: words to conditions, by recursive descent over the grammar in the package's docstring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opmon.errors import InputError
from opmon.grammar import Word
from opmon.robustness.query.conditions import COMPARISONS, Compared, Condition, Everything, Not, OneOf, Several
from opmon.robustness.query.words import QUERY
from opmon.wording import meant, nearest

DEEPEST = 40
OF_EVERY_TEST = ("order", "severity_sum", "quality")
_KEYWORDS = frozenset({"and", "or", "not", "in", "all"})


def parse(text: str, names: Sequence[str], levels: int, quality: bool = True) -> Condition:
    """The condition that ``text`` asks about the perturbations ``names``; an error marks its place in the text.

    ``quality`` false: there is no quality to ask about.
    """
    if not isinstance(text, str):
        raise InputError(f"a query is text, such as 'zoom > 2'; got {type(text).__name__}")
    if not text.strip():
        raise InputError("the query is empty; ask for example: order <= 2, or all")
    reader = _Reader(text, QUERY.words(text), _meanings(names), tuple(names), levels, quality)
    condition = reader.alternative()
    if reader.word.kind != "end":
        raise reader.error(f"{reader.word.text!r} is not expected here; join two conditions with and, or")
    return condition


def _meanings(names: Sequence[str]) -> Mapping[str, str]:
    """The spellings of the perturbations: their names with - or _, in any case, and P1 … Pk."""
    meanings = {f"p{number}": name for number, name in enumerate(names, start=1)}
    meanings |= {name: name for name in OF_EVERY_TEST}
    return meanings | {_plain(name): name for name in names}


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


@dataclass
class _Reader:
    text: str
    words: list[Word]
    meanings: Mapping[str, str]
    perturbations: tuple[str, ...]
    levels: int
    quality: bool
    at: int = 0
    depth: int = field(default=0)

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def error(self, message: str, word: Word | None = None) -> InputError:
        return QUERY.refused(self.text, word or self.word, message)

    def next(self) -> Word:
        word = self.word
        self.at += word.kind != "end"
        return word

    def is_keyword(self, name: str) -> bool:
        return self.word.kind == "name" and self.word.text.casefold() == name

    def alternative(self) -> Condition:
        parts = [self.both()]
        while self.is_keyword("or"):
            self.next()
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Several(tuple(parts), any_of=True)

    def both(self) -> Condition:
        parts = [self.denied()]
        while self.is_keyword("and"):
            self.next()
            parts.append(self.denied())
        return parts[0] if len(parts) == 1 else Several(tuple(parts), any_of=False)

    def denied(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"nested deeper than {DEEPEST}")
        try:
            if self.is_keyword("not"):
                self.next()
                return Not(self.denied())
            if self.is_keyword("all"):
                self.next()
                return Everything()
            if self.word.text == "(":
                return self.parenthesis()
            return self.comparison()
        finally:
            self.depth -= 1

    def parenthesis(self) -> Condition:
        opened = self.next()
        inner = self.alternative()
        if self.word.text != ")":
            if self.word.kind == "end":
                raise self.error("this parenthesis is never closed", opened)
            raise self.error(f"{self.word.text!r} is not expected here; a closing parenthesis or and, or is")
        self.next()
        return inner

    def comparison(self) -> Condition:
        first = self.word
        left = self.value()
        if self.is_keyword("in"):
            self.next()
            return self.members(left, first)
        parts: list[Condition] = []
        while self.word.text in COMPARISONS:
            sign, right_word = self.next().text, self.word
            right = self.value()
            self.check(left, sign, right, first, right_word)
            parts.append(Compared(left, sign, right))
            left, first = right, right_word
        if not parts:
            raise self.error(f"a comparison is missing after {first.text!r}, such as > 2")
        return parts[0] if len(parts) == 1 else Several(tuple(parts), any_of=False)

    def members(self, left: str | float, word: Word) -> Condition:
        if not isinstance(left, str):
            raise self.error("a name stands before 'in', such as zoom in {1, 2}", word)
        if self.word.text != "{":
            raise self.error("numbers in braces follow 'in', such as zoom in {1, 2}")
        self.next()
        numbers: list[float] = []
        while True:
            at = self.word
            value = self.value()
            if isinstance(value, str):
                raise self.error("only numbers stand in braces", at)
            self.check(left, "==", value, word, at)
            numbers.append(value)
            closing = self.next()
            if closing.text == "}":
                return OneOf(left, tuple(numbers))
            if closing.text != ",":
                raise self.error("a comma or a closing brace is missing here", closing)

    def value(self) -> str | float:
        word = self.word
        if word.kind == "number":
            self.next()
            return float(word.text)
        if word.kind == "end":
            raise self.error("the query ends here, and a name or a number is missing")
        if word.kind != "name" or word.text.casefold() in _KEYWORDS:
            raise self.error(f"a name or a number is expected here, not {word.text!r}")
        self.next()
        return self.known(word)

    def known(self, word: Word) -> str:
        plain = _plain(word.text)
        name = self.meanings.get(plain)
        if name is None:
            near = nearest(plain, self.meanings)
            hint = meant(None if near is None else self.meanings[near])
            have = ", ".join([*self.perturbations, *OF_EVERY_TEST])
            raise self.error(f"there is no {word.text!r} here{hint}; there are: {have}", word)
        if name == "quality" and not self.quality:
            raise self.error("no quality was measured; run the tomography with a quality score to ask about it", word)
        return name

    def check(self, left: str | float, sign: str, right: str | float, first: Word, second: Word) -> None:
        """A comparison that no test can ever meet, or that says nothing, is a mistake."""
        if not isinstance(left, str) and not isinstance(right, str):
            raise self.error("two numbers are compared; one side must be a name", first)
        for name, number, word in ((left, right, second), (right, left, first)):
            if not isinstance(name, str) or isinstance(number, str) or name == "quality":
                continue
            highest = self.highest(name)
            if not 0 <= number <= highest or (sign in ("==", "=") and number != int(number)):
                whole = "whole numbers " if sign in ("==", "=") else ""
                raise self.error(f"{name} has {whole}0..{highest}; got {number:g}", word)

    def highest(self, name: str) -> int:
        if name == "order":
            return len(self.perturbations)
        return self.levels * (len(self.perturbations) if name == "severity_sum" else 1)
