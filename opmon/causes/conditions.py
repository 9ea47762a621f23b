"""What may set failures apart: every cut through a number, every value of a column, what is missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opmon.causes.features import MISSING, Feature, Measurements, Values
from opmon.types import Floats
from opmon.wording import counting

Members = NDArray[np.bool_]
Side = Literal["over", "up to", "is", "missing"]

MOST_VALUES = 20
"""So many values of one feature are told apart, the most frequent ones."""
CUTS = 16
"""A number is cut at so many of its quantiles."""
LEAST = 0.01
"""A condition that holds for a smaller share of the inputs, or for all but that share, says nothing."""
FEWEST = 4


@dataclass(frozen=True, eq=False)
class Condition:
    """Something that holds for some inputs."""

    words: str
    feature: int
    """The number of the feature that it is about."""
    side: Side
    members: Members
    cut: float | None = None
    """Where a number is cut."""
    alone: bool = False
    """Whether it is told by itself: what a picture looks like is cause enough."""
    since: float | None = None
    """The moment since when it is meant, where not ever."""
    whenever: Members | None = None
    """The inputs that it holds for at any time, where it is meant since a moment."""

    @property
    def ever(self) -> Members:
        """The inputs that it holds for at any time."""
        return self.members if self.whenever is None else self.whenever


def conditions_of(features: Sequence[Feature]) -> list[Condition]:
    """Every condition that holds for enough inputs and not for nearly all."""
    found: list[Condition] = []
    for number, feature in enumerate(features):
        made = (
            _cuts(number, feature) if isinstance(feature, Measurements) else _named(number, feature.values, feature.of)
        )
        found += (each for each in made if _tells(each.members))
        absent = _absent(feature)
        if _tells(absent) and not _is_sparse(feature):
            found.append(Condition(f"{feature.name} {MISSING}", number, "missing", absent))
    return found


def lately(conditions: Sequence[Condition], since: Mapping[float, Members]) -> list[Condition]:
    """Every condition once more, since each of some moments: what is wrong since then was right before."""
    found: list[Condition] = []
    if not conditions:
        return found
    ever = np.stack([each.members for each in conditions])
    for moment, members in since.items():
        held = ever & members
        for at in np.flatnonzero(_tell(held)).tolist():
            one = conditions[at]
            own = held[at]
            found.append(Condition(one.words, one.feature, one.side, own, one.cut, one.alone, moment, one.members))
    return found


def _is_sparse(feature: Feature) -> bool:
    return isinstance(feature, Values) and feature.sparse


def _absent(feature: Feature) -> Members:
    if isinstance(feature, Measurements):
        return np.isnan(feature.values)
    return np.array([value is None for value in feature.values], dtype=np.bool_)


def _tells(members: Members) -> bool:
    return bool(_tell(members))


def _tell(members: Members) -> Members:
    """Which conditions say something, of one or of several with a row each."""
    size = members.shape[-1]
    least = max(FEWEST, LEAST * size)
    count = np.count_nonzero(members, axis=-1)
    return np.asarray((least <= count) & (count <= size - least))


def _cuts(number: int, feature: Measurements) -> Iterator[Condition]:
    values = feature.values
    known = values[np.isfinite(values)]
    if not len(known):
        return
    for cut in _edges(known):
        with np.errstate(invalid="ignore"):
            over, under = values > cut, values <= cut
        if feature.above is not None or not feature.is_named:
            yield Condition(feature.over(cut), number, "over", over, cut, feature.is_named)
        if feature.below is not None or not feature.is_named:
            yield Condition(feature.up_to(cut), number, "up to", under, cut, feature.is_named)
    if not feature.is_named:
        yield from _repeated(number, feature, known)


def _edges(known: Floats) -> list[float]:
    """Where numbers are cut: at quantiles, written with as few digits as keep them apart."""
    distinct = np.unique(known)
    if len(distinct) <= CUTS:
        return [float(value) for value in distinct[:-1]]
    at = np.concatenate((np.linspace(0.02, 0.1, 3), np.linspace(0.15, 0.85, CUTS - 6), np.linspace(0.9, 0.98, 3)))
    return list(dict.fromkeys(_rounded(float(value), distinct) for value in np.quantile(known, at)))


def _rounded(value: float, distinct: Floats) -> float:
    """The number with the fewest digits that divides the values as this one does, or nearly."""
    place = np.searchsorted(distinct, value, "right")
    for digits in range(1, 8):
        short = _short(value, digits)
        if abs(int(np.searchsorted(distinct, short, "right")) - int(place)) <= len(distinct) / 200:
            return short
    return value


def _short(value: float, digits: int) -> float:
    return 0.0 if value == 0 else round(value, digits - 1 - math.floor(math.log10(abs(value))))


def _repeated(number: int, feature: Measurements, known: Floats) -> Iterator[Condition]:
    """A number that comes often beside many others, such as the 0 of a column that broke."""
    values, counts = np.unique(known, return_counts=True)
    for value in values[counts >= max(FEWEST, 0.03 * len(known))][:MOST_VALUES]:
        told = f"{int(value):,}" if float(value).is_integer() else counting(value)
        yield Condition(f"{feature.name} = {told}", number, "is", feature.values == value)


def _named(number: int, values: NDArray[np.object_], words_of: Callable[[str], str]) -> Iterator[Condition]:
    counts = Counter(value for value in values if value is not None)
    for value, _ in counts.most_common(MOST_VALUES):
        yield Condition(words_of(value), number, "is", np.asarray(values == value, dtype=np.bool_))
