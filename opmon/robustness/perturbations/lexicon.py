"""Words that text perturbations exchange: synonyms, contractions, neighbouring keys. Constant data of the package."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files

from opmon.errors import InputError

CONTRACTIONS: Mapping[str, str] = {
    "aren't": "are not",
    "can't": "cannot",
    "couldn't": "could not",
    "didn't": "did not",
    "doesn't": "does not",
    "don't": "do not",
    "hadn't": "had not",
    "hasn't": "has not",
    "haven't": "have not",
    "he'll": "he will",
    "he's": "he is",
    "how's": "how is",
    "i'd": "i would",
    "i'll": "i will",
    "i'm": "i am",
    "i've": "i have",
    "isn't": "is not",
    "it'll": "it will",
    "it's": "it is",
    "let's": "let us",
    "shan't": "shall not",
    "she'll": "she will",
    "she's": "she is",
    "shouldn't": "should not",
    "that's": "that is",
    "there's": "there is",
    "they'll": "they will",
    "they're": "they are",
    "they've": "they have",
    "wasn't": "was not",
    "we'll": "we will",
    "we're": "we are",
    "we've": "we have",
    "weren't": "were not",
    "what's": "what is",
    "where's": "where is",
    "who's": "who is",
    "won't": "will not",
    "wouldn't": "would not",
    "you'll": "you will",
    "you're": "you are",
    "you've": "you have",
}
"""Short form to long form."""

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KEYBOARD: Mapping[str, str] = {
    key: "".join(
        other
        for near, line in enumerate(_ROWS)
        for at, other in enumerate(line)
        if other != key and abs(near - row) <= 1 and abs(at - place) <= 1
    )
    for row, letters in enumerate(_ROWS)
    for place, key in enumerate(letters)
}
"""The keys around each letter of an English keyboard."""


@functools.cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """opmon's own: for 4,579 common words the other words of their commonest sense in WordNet 3.1."""
    return parse_synonyms(files(__package__).joinpath("synonyms.txt").read_text(encoding="utf-8"))


def parse_synonyms(text: str) -> dict[str, tuple[str, ...]]:
    """One word per line with its synonyms after it; # begins a comment.

    >>> parse_synonyms("# mine\\nbig large great")
    {'big': ('large', 'great')}
    """
    synonyms: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if len(words) == 1:
            raise InputError(f"line {number} of the synonyms names no synonym for {words[0]!r}; write: big large great")
        if words:
            synonyms[words[0].lower()] = tuple(words[1:])
    if not synonyms:
        raise InputError("the synonyms name no word; write one per line with its synonyms after it: big large great")
    return synonyms
