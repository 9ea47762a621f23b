"""How inputs are divided into slices: by columns of the log, by variables, by the predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from opmon.types.documents import Document, Json

OTHER, MISSING = "other", "missing"
PREDICTION = "prediction"
"""The name of what divides by the predicted class."""
MOST = 8
"""So many values of a column are told apart where the configuration does not say which, or how many."""

Kind = Literal["column", "variable", "prediction"]


@dataclass(frozen=True)
class Cut:
    """One way to divide the inputs, as the configuration says it: by values, or by bands of numbers."""

    name: str
    """The column of the log or the variable; ``prediction`` for the predicted class."""
    of: Kind = "column"
    values: tuple[str, ...] | None = None
    """The values to tell apart; None: the most frequent ones."""
    edges: tuple[float, ...] | None = None
    """Where numbers are cut into bands, each with its lower edge and without its upper one."""
    most: int = MOST
    at_least: int = 0
    """The draws that each of its slices gets at least."""
    crossed: bool = True
    """Whether its slices may be crossed with those of others without being asked to."""

    @property
    def fixed(self) -> tuple[str, ...] | None:
        """The names of its levels where they are known before any input is: all but those of the rest."""
        if self.edges is not None:
            return bands(self.edges)
        return None if self.values is None else tuple(map(level_of, self.values))

    @property
    def room(self) -> int:
        """The most levels that it can ever have, with the rest and what is missing."""
        if self.edges is not None:
            return len(self.edges) + 2
        return (self.most if self.values is None else len(self.values)) + 2


def bands(edges: Sequence[float]) -> tuple[str, ...]:
    """The names of the bands that edges cut.

    >>> bands([0, 30, 60])
    ('below 0', '0-30', '30-60', '60 and more')
    """
    between = " to " if min(edges) < 0 else "-"
    inner = [f"{number(low)}{between}{number(high)}" for low, high in pairwise(edges)]
    return (f"below {number(edges[0])}", *inner, f"{number(edges[-1])} and more")


def number(value: float) -> str:
    """A number as it is written: whole ones without a point.

    >>> number(1e6), number(0.25)
    ('1000000', '0.25')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def level_of(value: str) -> str:
    """The name of a value's level: in quotes where it would be taken for the rest.

    >>> level_of("DE"), level_of("other")
    ('DE', '"other"')
    """
    return f'"{value}"' if value in (OTHER, MISSING) else value


@dataclass(frozen=True)
class Divided:
    """The levels that a cut has in a round, and how an input is put into one of them."""

    name: str
    of: Kind
    levels: tuple[str, ...]
    sizes: tuple[int, ...]
    """How many inputs of the frame each level has."""
    room: int
    """The most levels that it can ever have."""
    edges: tuple[float, ...] | None = None
    at_least: int = 0
    fixed: bool = False
    """Whether its levels were known before any input."""

    @property
    def named(self) -> tuple[str, ...]:
        """Its levels without the rest and what is missing."""
        return tuple(level for level in self.levels if level not in (OTHER, MISSING))

    def slice_name(self, level: str) -> str:
        """What a level's slice is called, such as ``country DE``."""
        return f"{self.name} {level}"


@dataclass(frozen=True, eq=False)
class DrawnCut:
    """The slices of a cut that the draws of a round lie in."""

    name: str
    members: Mapping[str, NDArray[np.bool_]]
    """By slice, which draws are in it."""
    room: int
    """The most slices that it can ever have."""
    fixed: bool
    """Whether they were known before any input."""


@dataclass(frozen=True)
class OneSlice:
    """A slice of a round: one level of a cut, or of several that are crossed."""

    name: str
    levels: Mapping[str, str]
    """By cut, its level."""
    size: int
    """How many inputs of the frame are in it."""


@dataclass(frozen=True)
class Slicing:
    """What a round's inputs are divided into, fixed when they were scored and before any label."""

    divided: tuple[Divided, ...]
    slices: tuple[OneSlice, ...]
    size: int
    """How many inputs the frame has."""
    notes: tuple[str, ...] = field(default=())

    def stored(self) -> dict[str, Json]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def of(cls, stored: Document) -> Self:
        """As :meth:`stored` wrote it."""
        divided = tuple(
            Divided(**{**each, "levels": tuple(each["levels"]), "sizes": tuple(each["sizes"]),
                       "edges": None if each["edges"] is None else tuple(each["edges"])})
            for each in stored["divided"]
        )  # fmt: skip
        slices = tuple(OneSlice(**each) for each in stored["slices"])
        return cls(divided, slices, stored["size"], tuple(stored["notes"]))


@dataclass(frozen=True)
class Sliced:
    """What is known of one slice of a round."""

    name: str
    levels: Mapping[str, str]
    """By cut, its level."""
    inputs: int
    """How many inputs of the round are in it: counted, not estimated."""
    share: float
    draws: int
    answers: int
    value: float | None = None
    """The estimate; None where no answer is in it."""
    low: float | None = None
    """The bounds of its interval; None: there is none on this side."""
    high: float | None = None
    note: str = ""
    """What must be known of it, such as that its answers are too few to say more than bounds."""
    worse_by: float | None = None
    """By how much it is worse than all other inputs; None where that is not known of it."""
    worse_at_least: float | None = None
    """By how much at least, as far as the error over all slices bears."""
    further: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Value and bounds of the measures beside the main one."""
