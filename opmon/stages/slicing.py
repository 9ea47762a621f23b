"""The slices of a round: which values have one, how many inputs of the frame lie in each, and where the drawn ones do.

All of it follows from the inputs and from rounds before, and is fixed before any label. A value that has a slice keeps
it in later rounds, so that a rule remembers it by its name; new ones join while there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.config import MonitorSettings
from opmon.config.slices import MOST_ASKED, crossings_of, cuts_of
from opmon.jobs.slices import banded
from opmon.stages.frames import SLICE, VARIABLE
from opmon.types import Draw
from opmon.types.slicing import MISSING, OTHER, Cut, Divided, OneSlice, Slicing, level_of

SHARE = 0.01
"""The least share of the inputs with which a value gets a slice of its own without being asked for."""
COUNTED = 1000
"""A value that fewer than one in so many inputs of a part have is not counted there."""
ENOUGH = 30
"""The draws that a crossing expects at least, unless it is asked for."""
MOST = 40
"""So many slices are crossed up to, those of single columns included."""
SAME = 0.95
"""A crossing that has more than this share of one of its slices tells nothing new."""

Codes = NDArray[np.int16]


def counted(texts: pa.DictionaryArray) -> Counter[str]:
    """How often the more frequent values of a part are there, by their level."""
    codes = np.asarray(pc.fill_null(texts.indices, -1))
    times = np.bincount(codes[codes >= 0], minlength=len(texts.dictionary))
    often = np.flatnonzero(times >= max(1, len(texts) // COUNTED))
    return Counter(
        {
            level_of(value): int(times[at])
            for at, value in zip(often, texts.dictionary.take(often).to_pylist(), strict=True)
        }
    )


def levels_of(cut: Cut, counts: Counter[str], size: int, before: Divided | None) -> tuple[str, ...]:
    """The levels of a cut: those that are configured, or those of the round before and the most frequent new ones."""
    if cut.fixed is not None:
        return (*cut.fixed, MISSING) if cut.edges is not None else (*cut.fixed, OTHER, MISSING)
    known = () if before is None or before.edges is not None else before.named[: cut.most]
    new = [
        value
        for value, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        if value not in known and count >= SHARE * size
    ]
    return (*known, *new[: max(0, cut.most - len(known))], OTHER, MISSING)


def coded(texts: pa.DictionaryArray, levels: Sequence[str]) -> pa.DictionaryArray:
    """The level of each input, as the frame keeps it."""
    names = pa.array([None if text is None else level_of(text) for text in texts.dictionary.to_pylist()], pa.string())
    rest = levels.index(OTHER) if OTHER in levels else levels.index(MISSING)
    at = pc.fill_null(pc.index_in(names, pa.array(levels, pa.string())), rest)
    codes = (
        pc.fill_null(at.take(texts.indices), levels.index(MISSING)) if len(at) else _all(len(texts), MISSING, levels)
    )
    return pa.DictionaryArray.from_arrays(codes.cast(pa.int16()), pa.array(levels, pa.string()))


def _all(size: int, level: str, levels: Sequence[str]) -> pa.Array:
    return pa.array(np.full(size, levels.index(level), np.int16))


def slicing_of(
    settings: MonitorSettings,
    path: Path,
    levels: Mapping[str, tuple[str, ...]],
    before: Slicing | None,
    classes: Sequence[str] | None,
    budget: int,
) -> Slicing | None:
    """What the inputs of the frame at ``path`` are divided into; None where the monitor has no slices."""
    cuts = cuts_of(settings)
    if not cuts:
        return None
    divided, codes = [], {}
    for cut in cuts:
        own = levels.get(cut.name) or _levels_of_answers(path, cut, classes, before)
        one = Divided(cut.name, cut.of, own, (), cut.room, cut.edges, cut.at_least, cut.fixed is not None)
        codes[cut.name] = codes_of(path, one)
        sizes = np.bincount(codes[cut.name], minlength=len(own))
        divided.append(replace(one, sizes=tuple(sizes.tolist())))
    size = len(next(iter(codes.values())))
    alone = {each.column for each in settings.slices if each.column is not None}
    singles = [
        OneSlice(one.slice_name(level), {one.name: level}, many)
        for one in divided
        if one.name in alone
        for level, many in zip(one.levels, one.sizes, strict=True)
        if many
    ]
    crossed = _crossed(divided, codes, crossings_of(settings), {cut.name for cut in cuts if cut.crossed}, budget)
    kept = crossed[: max(0, MOST - len(singles))]
    notes = (*_notes(divided, size, len(crossed) - len(kept)), *_promised(divided, budget))
    return Slicing(tuple(divided), (*singles, *kept), size, notes)


def _notes(divided: Sequence[Divided], size: int, left_out: int) -> list[str]:
    found = []
    for one in divided:
        has = dict(zip(one.levels, one.sizes, strict=True))
        if size and has.get(MISSING) == size:
            found.append(f"no input has a value of {one.name}: is the column still there, and of one value each?")
        elif size and has.get(OTHER, 0) + has.get(MISSING, 0) == size:
            found.append(f"no value of {one.name} that has a slice is there: all inputs are in {one.name} {OTHER}")
    if left_out:
        found.append(f"{left_out} of the crossings that are asked for are left out: {MOST} slices are the most")
    return found


def _promised(divided: Sequence[Divided], budget: int) -> list[str]:
    """A note where the round has too few labels for what its slices are promised."""
    found = []
    for one in divided:
        own = [size for level, size in zip(one.levels, one.sizes, strict=True) if level in one.named]
        if sum(min(size, one.at_least) for size in own) > MOST_ASKED * budget:
            asked = f"at_least: {one.at_least} of {one.name}"
            found.append(f"the round's {budget} labels are too few for {asked}: each of its slices has fewer")
    return found


def _levels_of_answers(path: Path, cut: Cut, classes: Sequence[str] | None, before: Slicing | None) -> tuple[str, ...]:
    """The levels of a cut by what the model answered."""
    if cut.of != "prediction" or cut.fixed is not None:
        return levels_of(cut, Counter(), 0, None)
    if classes is not None and len(classes) <= cut.most:
        return (*map(level_of, classes), OTHER, MISSING)
    texts = _answers(path)
    return levels_of(cut, counted(texts), len(texts), known_of(before, cut.name))


def known_of(before: Slicing | None, name: str) -> Divided | None:
    """How the round before was divided by the same."""
    return next((one for one in (before.divided if before is not None else ()) if one.name == name), None)


def codes_of(path: Path, one: Divided) -> Codes:
    """The level of every input of a frame, as its place among the levels."""
    if one.of == "column":
        texts = one_dictionary(_column(path, SLICE + one.name))
        at = pc.index_in(texts.dictionary, pa.array(one.levels, pa.string()))
        return np.asarray(at.take(texts.indices)).astype(np.int16)
    if one.edges is not None:
        numbers = _column(path, "prediction" if one.of == "prediction" else VARIABLE + one.name)
        texts = banded(numbers.to_numpy(zero_copy_only=False).astype(np.float64), one.edges)
        return np.asarray(pc.fill_null(texts.indices, len(one.levels) - 1)).astype(np.int16)
    return np.asarray(coded(_answers(path), one.levels).indices)


def _answers(path: Path) -> pa.DictionaryArray:
    with pq.ParquetFile(path, read_dictionary=["prediction"]) as file:
        found = file.read(columns=["prediction"])["prediction"]
    return one_dictionary(found if pa.types.is_dictionary(found.type) else found.cast(pa.string()).dictionary_encode())


def _column(path: Path, name: str) -> pa.ChunkedArray:
    with pq.ParquetFile(path) as file:
        return file.read(columns=[name])[name]


def one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The pieces of a column of texts as one array with one dictionary."""
    return column.unify_dictionaries().combine_chunks()


def _crossed(
    divided: Sequence[Divided],
    codes: Mapping[str, Codes],
    asked: Sequence[tuple[str, ...]],
    free: set[str],
    budget: int,
) -> list[OneSlice]:
    """The crossings: those that are asked for, and others that expect draws enough, the large ones first."""
    of = {one.name: one for one in divided}
    found = [each for names in asked for each in _cells([of[name] for name in names], codes)]
    known = {frozenset(names) for names in asked}
    pairs = [pair for pair in combinations(divided, 2) if {one.name for one in pair} <= free]
    for pair in pairs:
        if frozenset(one.name for one in pair) not in known:
            found_here = _cells(pair, codes)
            found += [each for each in found_here if _tells(each, of, sum(pair[0].sizes), budget)]
    return sorted(found, key=lambda each: (frozenset(each.levels) not in known, -each.size, each.name))


def _cells(some: Sequence[Divided], codes: Mapping[str, Codes]) -> list[OneSlice]:
    place = np.zeros(len(codes[some[0].name]), np.int64)
    for one in some:
        place = place * len(one.levels) + codes[one.name]
    shape = tuple(len(one.levels) for one in some)
    sizes = np.bincount(place, minlength=int(np.prod(shape)))
    found = []
    for at in np.flatnonzero(sizes):
        levels = {one.name: one.levels[k] for one, k in zip(some, np.unravel_index(at, shape), strict=True)}
        name = ", ".join(one.slice_name(levels[one.name]) for one in some)
        found.append(OneSlice(name, levels, int(sizes[at])))
    return found


def _tells(crossed: OneSlice, of: Mapping[str, Divided], size: int, budget: int) -> bool:
    """Whether a crossing that nobody asked for has draws enough, and is not nearly one of its slices."""
    if set(crossed.levels.values()) & {OTHER, MISSING} or crossed.size * budget < ENOUGH * size:
        return False
    single = (of[name].sizes[of[name].levels.index(level)] for name, level in crossed.levels.items())
    return crossed.size <= SAME * min(single)


def with_slices(slicing: Slicing, path: Path, drawn: Draw) -> Draw:
    """The draw with the level of each of its inputs, for every cut."""
    columns = {SLICE + one.name: codes_of(path, one)[drawn.positions] for one in slicing.divided}
    return replace(drawn, columns={**drawn.columns, **columns})
