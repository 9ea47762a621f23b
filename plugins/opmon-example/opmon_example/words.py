"""The judge ``words``: the class whose words an input holds most of."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opmon.abc import Judge, Opinion, Question
from opmon.errors import InputError
from opmon.types import Guide


@dataclass(frozen=True)
class Words(Judge):
    """Counts the words of each class in an input; the more of them are of one class, the surer it is.

    It costs nothing, is asked about every input, and need not be right often: labels correct it.
    """

    words: Mapping[str, Sequence[str]]
    """By class, the words that speak for it."""

    def __post_init__(self) -> None:
        if not isinstance(self.words, Mapping) or not self.words:
            example = "{spam: [prize, win]}"
            raise InputError(f"words must map classes to lists of words, such as {example}; got {self.words!r}")

    def answer(self, questions: Sequence[Question], guide: Guide) -> Iterator[Opinion]:
        for question in questions:
            text = json.dumps(dict(question.payload), ensure_ascii=False).lower()
            there = Counter(re.findall(r"\w+", text))
            found = {name: sum(there[word.lower()] for word in words) for name, words in self.words.items()}
            total = sum(found.values())
            yield Opinion(question.key, scores={name: count / total for name, count in found.items()} if total else {})
