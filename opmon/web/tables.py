"""Measures of a round as tables: those of classes beside each other, confusions as a matrix, and the rest in a list."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from opmon.store.measured import Measured

_OF_CLASS = re.compile(r"(?P<base>[^\[]+)\[(?P<name>.*)\]\Z", re.DOTALL)
_CONFUSION, _AS = "confusion", " as "


@dataclass(frozen=True)
class Confusion:
    """How often each class is taken for each: a row for every true class."""

    classes: Sequence[str]
    cells: Sequence[Sequence[Measured]]


@dataclass(frozen=True)
class PerClass:
    """A row for each class, a column for each measure."""

    measures: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Measured | None]]]


@dataclass(frozen=True)
class Tables:
    """All measures of a round, each in one place."""

    plain: Sequence[Measured]
    per_class: PerClass | None
    confusions: Sequence[Confusion]


def tables_of(measures: Sequence[Measured]) -> Tables:
    """The measures in the tables that they belong to."""
    cells = [each for each in measures if _base(each) == _CONFUSION]
    confusions = [_confusion(list(own)) for _, own in groupby(cells, key=lambda each: each.measure)]
    rest = [each for each in measures if _base(each) != _CONFUSION]
    per_class = _per_class([each for each in rest if _base(each)])
    plain = rest if per_class is None else [each for each in rest if not _base(each)]
    return Tables(plain, per_class, confusions)


def _base(each: Measured) -> str:
    """What is measured of a class; empty where it is no class that is measured."""
    found = _OF_CLASS.match(each.quantity.name)
    return "" if found is None else str(found["base"])


def _named(each: Measured) -> str:
    found = _OF_CLASS.match(each.quantity.name)
    return "" if found is None else str(found["name"])


def _confusion(cells: Sequence[Measured]) -> Confusion:
    """The cells come by true class; those on the diagonal name a class twice, whatever is in its name."""
    side = math.isqrt(len(cells))
    both = [_named(cells[k * side + k]) for k in range(side)]
    classes = [name[: (len(name) - len(_AS)) // 2] for name in both]
    return Confusion(classes, [cells[k * side : (k + 1) * side] for k in range(side)])


def _per_class(measures: Sequence[Measured]) -> PerClass | None:
    """None where no measure is of more than one class, which is no table."""
    names, bases = (list(dict.fromkeys(call(each) for each in measures)) for call in (_named, _base))
    if len(names) < 2:
        return None
    found = {(_named(each), _base(each)): each for each in measures}
    rows = [(name, [found.get((name, base)) for base in bases]) for name in names]
    return PerClass(bases, rows)
