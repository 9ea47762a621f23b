"""The tomographies of monitors as pages and the API show them: read, asked, and laid out in tables."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from opmon.config import MonitorSettings
from opmon.errors import InputError, NotFoundError
from opmon.reports.robustness_examples import ExampleKept
from opmon.reports.robustness_examples import unpacked as unpacked_examples
from opmon.reports.robustness_files import unpacked
from opmon.robustness.result import Answer, Tomography
from opmon.store import tomographies
from opmon.store.engine import Store
from opmon.store.tomographies import Kept
from opmon.web.charts.cube import Voxel
from opmon.wording import percent

HISTORY = 100
MOST_PAIRS = 30
"""Of more pairs those are shown under which the least is right."""
_IN_MEMORY, _ANSWERS = 8, 200


@dataclass
class Tomographies:
    """The tomographies that were asked for lately, so that each is read and unpacked once."""

    store: Store
    _found: OrderedDict[tuple[int, datetime], Tomography] = field(default_factory=OrderedDict, repr=False)
    _answers: OrderedDict[tuple[int, datetime, str, int], Answer] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def of(self, kept: Kept) -> Tomography:
        """All tests of one; an error where they are not kept any more."""
        key = kept.round_id, kept.made_at
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        with self.store.read() as connection:
            content = tomographies.tests_of(connection, kept.round_id)
        if content is None:
            raise NotFoundError(
                f"the tests of round {kept.round} are kept in its MLflow run alone: download its folder robustness and "
                f"ask it with 'opmon robustness query --from robustness QUESTION'"
            )
        result = unpacked(content)
        with self._lock:
            self._found[key] = result
            while len(self._found) > _IN_MEMORY:
                self._found.popitem(last=False)
        return result

    def answer(self, kept: Kept, question: str, worst: int) -> Answer:
        """The answer to a question; the last ones are remembered, for a page asks some of them each time."""
        key = kept.round_id, kept.made_at, question, worst
        with self._lock:
            if key in self._answers:
                return self._answers[key]
        answer = self.of(kept).ask(question, worst)
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return answer

    def examples(self, kept: Kept) -> list[ExampleKept]:
        """Some inputs under some tests; none where they were erased."""
        with self.store.read() as connection:
            content = tomographies.examples_of(connection, kept.round_id)
        return [] if content is None else unpacked_examples(content)


def history_of(store: Store, settings: MonitorSettings) -> list[Kept]:
    """Those of a monitor, newest first."""
    with store.read() as connection:
        return tomographies.newest(connection, settings.name, HISTORY)


def one_of(store: Store, settings: MonitorSettings, number: int) -> Kept:
    """That of a round."""
    with store.read() as connection:
        found = tomographies.of_round(connection, settings.name, number)
    if found is None:
        raise NotFoundError(f"round {number} of {settings.name} has no tomography")
    return found


def asked(result: Tomography, text: str | None) -> NDArray[np.bool_]:
    """Which tests a question is about; none where nothing, or everything, is asked."""
    if text is None or text.strip().casefold() == "all":
        return np.zeros(len(result.tests), bool)
    mask = np.zeros(len(result.tests), bool)
    mask[result.asked(text)] = True
    return mask


@dataclass(frozen=True)
class Shades:
    """How shares become shades: 0 where all is right, 10 where the least is."""

    lowest: float

    @classmethod
    def of(cls, result: Tomography) -> Shades:
        return cls(min(float(result.share.min()), 0.98))

    def __call__(self, share: float) -> int:
        return min(10, max(0, round(10 * (1 - share) / (1 - self.lowest))))


@dataclass(frozen=True)
class Table:
    """The tests of two perturbations: a row for each severity of the first, a column for each of the second."""

    first: str
    second: str
    cells: Sequence[Sequence[Voxel | None]]
    lowest: float


def pair_tables(result: Tomography, mask: NDArray[np.bool_]) -> list[Table]:
    """A table for each pair, all other perturbations at 0; in an ordered space the first is applied first."""
    shades = Shades.of(result)
    arrange = itertools.permutations if result.space.ordered else itertools.combinations
    tables = [_table(result, mask, shades, pair) for pair in arrange(range(len(result.space.names)), 2)]
    if result.space.highest < 2:
        return []
    if len(tables) > MOST_PAIRS:
        tables = sorted(tables, key=lambda table: table.lowest)[:MOST_PAIRS]
    return tables


def _table(result: Tomography, mask: NDArray[np.bool_], shades: Shades, pair: Sequence[int]) -> Table:
    rows = result.grid(*pair)
    cells = [[_voxel(result, mask, shades, row) for row in line] for line in rows.tolist()]
    names = result.space.names
    return Table(names[pair[0]], names[pair[1]], cells, float(result.share[rows[rows >= 0]].min()))


def layers(result: Tomography, mask: NDArray[np.bool_], three: tuple[int, int, int]) -> list[list[list[Voxel | None]]]:
    """The tests of three perturbations: a layer for each severity of the third, in it a row for each of the first."""
    shades, rows = Shades.of(result), result.grid(*three)
    return [
        [[_voxel(result, mask, shades, row) for row in line] for line in rows[:, :, level].tolist()]
        for level in range(rows.shape[2])
    ]


def _voxel(result: Tomography, mask: NDArray[np.bool_], shades: Shades, row: int) -> Voxel | None:
    if row < 0:
        return None
    share, measured = float(result.share[row]), bool(result.seen[row] > 0)
    label = result.space.label(result.tests.steps(row))
    words = f"{label}: {percent(share, 1)}, {'measured' if measured else 'predicted'}"
    return Voxel(shades(share), measured, bool(mask[row]), f"{100 * share:.0f}", words)


def singles(result: Tomography, mask: NDArray[np.bool_]) -> list[tuple[str, list[Voxel | None]]]:
    """Each perturbation alone, at every severity from 0."""
    shades = Shades.of(result)
    return [
        (name, [_voxel(result, mask, shades, row) for row in result.grid(number).tolist()])
        for number, name in enumerate(result.space.names)
    ]


def three_of(result: Tomography, names: Sequence[str | None]) -> tuple[int, int, int]:
    """The perturbations that are named, and for the rest those that cost most on their own."""
    known = {name: number for number, name in enumerate(result.space.names)}
    chosen = [_number(known, name) for name in names if name]
    if len(set(chosen)) != len(chosen):
        raise InputError(f"three different perturbations make a cube; got {', '.join(filter(None, names))}")
    means = [float(result.share[result.grid(number)].mean()) for number in range(len(known))]
    rest = [number for number in sorted(known.values(), key=means.__getitem__) if number not in chosen]
    first, second, third = [*chosen, *rest][:3]
    return (first, second, third) if chosen else tuple(sorted((first, second, third)))  # type: ignore[return-value]


def _number(known: dict[str, int], name: str) -> int:
    if name not in known:
        raise InputError(f"there is no perturbation {name!r}; there are: {', '.join(known)}")
    return known[name]
