"""The names of classes in a log, matched with the model's own answers to the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Names = NDArray[np.str_]


@dataclass(frozen=True)
class Held:
    """The model's class for each value in the log, and the share of the rows on which both then agree."""

    names: Mapping[str, str]
    share: float
    by_chance: float

    @property
    def tells(self) -> bool:
        """Whether they agree more often than by chance."""
        return self.share > self.by_chance + 0.5 * (1 - self.by_chance) or self.share > 0.999


def held(said: Names, own: Names, classes: Sequence[str]) -> Held:
    """Match each different value in the log with a class of its own so that most rows agree.

    If all its values are the model's own classes, they are taken as they are.

    >>> held(np.array(["1", "0", "1"]), np.array(["bad", "good", "bad"]), ["good", "bad"]).names
    {'0': 'good', '1': 'bad'}
    """
    words, which = np.unique(said, return_inverse=True)
    if set(words.tolist()) <= set(classes):
        return Held({name: name for name in words.tolist()}, float((said == own).mean()), _chance(said, own))
    if len(words) > len(classes):
        return Held({}, 0.0, 0.0)
    from scipy.optimize import linear_sum_assignment

    counts = np.stack([np.bincount(which[own == name], minlength=len(words)) for name in classes], axis=1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    names = {str(words[row]): classes[column] for row, column in zip(rows, columns, strict=True)}
    renamed = np.array([names[word] for word in said.tolist()])
    return Held(names, float((renamed == own).mean()), _chance(renamed, own))


def _chance(said: Names, own: Names) -> float:
    """The share of rows that would agree by chance."""
    one, counts = np.unique(said, return_counts=True)
    return float(sum(count * (own == name).sum() for name, count in zip(one, counts, strict=True)) / len(said) ** 2)


def spelt(classes: Sequence[str], names: Mapping[str, str]) -> dict[str, list[str]] | None:
    """The classes in the model's order, called by a word where one of both says a word; None where they need not be.

    >>> spelt(["0", "1"], {"paid": "0", "default": "1"}), spelt(["paid", "default"], {"0": "paid", "1": "default"})
    ({'paid': ['0'], 'default': ['1']}, {'paid': ['0'], 'default': ['1']})
    """
    back = {own: said for said, own in names.items()}
    if all(back.get(own, own) == own for own in classes):
        return None
    found: dict[str, list[str]] = {}
    for own in classes:
        said = back.get(own, own)
        name, other = (said, own) if _is_code(own) and not _is_code(said) else (own, said)
        found[name] = [] if name == other else [other]
    return found


def clashes(spellings: Mapping[str, Sequence[str]]) -> bool:
    """Whether one text would stand for two classes."""
    texts = [text for name, others in spellings.items() for text in {name, *others}]
    return len(set(texts)) < len(texts)


def threshold_of(numbers: NDArray[np.float64], second: NDArray[np.bool_]) -> tuple[float, float]:
    """From which number on the second of two classes is answered, and on which share of the rows that is so."""
    order = np.argsort(numbers, kind="stable")
    ranked, above = numbers[order], second[order]
    right = np.concatenate([[0], np.cumsum(~above)]) + np.concatenate([np.cumsum(above[::-1])[::-1], [0]])
    cut = int(right.argmax())
    low = ranked[cut - 1] if cut else ranked[0]
    high = ranked[cut] if cut < len(ranked) else ranked[-1]
    share = float(right[cut] / len(numbers))
    if low <= 0.5 <= high or (((numbers >= 0.5) == second).mean() >= share - 0.005):
        return 0.5, float(((numbers >= 0.5) == second).mean())
    return _shortest(float(low), float(high)), share


def _shortest(low: float, high: float) -> float:
    """The number with the fewest digits above ``low`` and up to ``high``."""
    for digits in range(1, 9):
        value = float(np.ceil(low * 10**digits + 1e-9) / 10**digits)
        if low < value <= high:
            return value
    return high


def _is_code(text: str) -> bool:
    return text.removeprefix("-").isdigit() or text in ("true", "false")
