"""Text: synonym, typos, contraction and punctuation. The severity is the number of edits, as in TestifAI; a table
``edits`` gives longer texts more of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from opmon.abc import Perturbation
from opmon.robustness.perturbations._text import WORD, Texts, chosen, edited, like_case
from opmon.robustness.perturbations.base import Kind, parameter, require_table
from opmon.robustness.perturbations.lexicon import CONTRACTIONS, KEYBOARD, synonyms

_EDITS = (1, 2, 3, 4, 5)
_MARKS = (",", ".", ";", ":", "!", "?", "-", "…")


@dataclass(frozen=True)
class Synonym(Perturbation):
    """Words replaced by a synonym (TextAttack's WordSwapWordNet, Morris et al., EMNLP 2020). ``words`` maps a word in
    small letters to its synonyms; None takes opmon's own, the commonest words of WordNet 3.1."""

    kind: ClassVar[Kind] = "text"
    edits: tuple[int, ...] = _EDITS
    """Numbers of edits, one for each severity, the mildest first."""
    words: Mapping[str, Sequence[str]] | None = field(default=None, repr=False)
    """Words and their synonyms."""

    def __post_init__(self) -> None:
        require_table("edits", self.edits, 0, 10_000)

    def apply(self, inputs: Texts, severity: int, rng: np.random.Generator) -> Texts:
        known = synonyms() if self.words is None else self.words

        def edit(text: str, where: float, how: float) -> str:
            places = [match for match in WORD.finditer(text) if match.group().lower() in known]
            if not places:
                return text
            match = chosen(places, where)
            other = chosen(known[match.group().lower()], how)
            return text[: match.start()] + like_case(other, match.group()) + text[match.end() :]

        return edited(inputs, int(parameter(self.edits, severity, "synonym")), rng, edit, int(max(self.edits)))


@dataclass(frozen=True)
class Typos(Perturbation):
    """Slips of the fingers inside a word: two letters swapped, one left out, one doubled, or a neighbouring key
    (TextAttack's character swaps, Morris et al., EMNLP 2020; Gao et al., DeepWordBug, 2018)."""

    kind: ClassVar[Kind] = "text"
    edits: tuple[int, ...] = _EDITS
    """Numbers of edits, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("edits", self.edits, 0, 10_000)

    def apply(self, inputs: Texts, severity: int, rng: np.random.Generator) -> Texts:
        return edited(inputs, int(parameter(self.edits, severity, "typos")), rng, _slip, int(max(self.edits)))


@dataclass(frozen=True)
class Contraction(Perturbation):
    """'do not' becomes 'don't', and the other way round (TextAttack's WordSwapContract; CheckList, Ribeiro et al., ACL
    2020). A text without any stays as it is."""

    kind: ClassVar[Kind] = "text"
    edits: tuple[int, ...] = _EDITS
    """Numbers of edits, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("edits", self.edits, 0, 10_000)

    def apply(self, inputs: Texts, severity: int, rng: np.random.Generator) -> Texts:
        return edited(inputs, int(parameter(self.edits, severity, "contraction")), rng, _contract, int(max(self.edits)))


@dataclass(frozen=True)
class Punctuation(Perturbation):
    """A mark put after a word, or taken away (CheckList's punctuation, Ribeiro et al., ACL 2020)."""

    kind: ClassVar[Kind] = "text"
    edits: tuple[int, ...] = _EDITS
    """Numbers of edits, one for each severity, the mildest first."""

    def __post_init__(self) -> None:
        require_table("edits", self.edits, 0, 10_000)

    def apply(self, inputs: Texts, severity: int, rng: np.random.Generator) -> Texts:
        return edited(inputs, int(parameter(self.edits, severity, "punctuation")), rng, _mark, int(max(self.edits)))


def _slip(text: str, where: float, how: float) -> str:
    words = [match for match in WORD.finditer(text) if len(match.group()) > 2]
    if not words:
        return text
    scaled = where * len(words)
    match = words[min(int(scaled), len(words) - 1)]
    at = match.start() + 1 + int((scaled % 1) * (len(match.group()) - 2))
    kind, rest = int(how * 4), (how * 4) % 1
    letter = text[at]
    if kind == 0:
        return text[:at] + text[at + 1] + letter + text[at + 2 :]
    if kind == 1:
        return text[:at] + text[at + 1 :]
    if kind == 2:
        return text[:at] + letter + text[at:]
    near = KEYBOARD.get(letter.lower(), letter)
    return text[:at] + like_case(chosen(near, rest), letter) + text[at + 1 :]


_LONG = {long: short for short, long in CONTRACTIONS.items()}
_EITHER = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, [*CONTRACTIONS, *_LONG]), key=len, reverse=True)) + r")\b", re.IGNORECASE
)


def _contract(text: str, where: float, how: float) -> str:
    places = list(_EITHER.finditer(text.replace("’", "'")))
    if not places:
        return text
    match = chosen(places, where)
    form = match.group().lower()
    other = CONTRACTIONS.get(form) or _LONG[form]
    return text[: match.start()] + like_case(other, match.group()[:1]) + text[match.end() :]


def _mark(text: str, where: float, how: float) -> str:
    marks = [match.start() for match in re.finditer(r"[^\w\s]", text)]
    if how < 0.3 and marks:
        at = chosen(marks, where)
        return text[:at] + text[at + 1 :]
    words = list(WORD.finditer(text))
    if not words:
        return text
    at = chosen(words, where).end()
    return text[:at] + str(chosen(_MARKS, (how * 10) % 1)) + text[at:]
