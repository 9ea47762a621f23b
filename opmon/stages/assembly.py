"""The parts of a round put together: what is left out and why, duplicates, times, and the frame.

A reduction over columns: no more than one part is in memory as a whole, and of all inputs only their hashes.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.config.slices import cuts_of
from opmon.jobs.counting import bounded
from opmon.jobs.moments import Span
from opmon.jobs.neurons import from_bytes
from opmon.jobs.parts import ACTIVATIONS, CHANCE, HASH, LOGGED, OWN, SLICE, VARIABLE, Part, lacking
from opmon.jobs.served import Skew, skew_of_numbers
from opmon.stages.frames import levels_as_bytes, write_frame
from opmon.stages.identities import first_met
from opmon.stages.levels import Levels
from opmon.stages.slicing import coded, counted, known_of, one_dictionary, slicing_of
from opmon.stages.slicing import levels_of as levels_of_cut
from opmon.stages.toolbox import Toolbox, levels_of
from opmon.stages.unscorable import Unscorable, require_judged
from opmon.store import rounds
from opmon.store.rounds import Round
from opmon.types import Slice
from opmon.types.slicing import Cut, Slicing


@dataclass(frozen=True, eq=False)
class Assembled:
    """What a round keeps of its parts beside its frame."""

    inputs: int
    losses: Counter[str]
    duplicates: int
    hashes: NDArray[np.uint64] | None
    """Of the frame's inputs, sorted; None where the log has no ids."""
    skew: float | None
    classes: tuple[str, ...] | None
    span: tuple[datetime, datetime] | None = None
    late: int = 0
    """Inputs that were answered before the end of the round before."""
    slicing: Slicing | None = None
    """What they are divided into; None where nothing divides them."""


def assemble(work: Toolbox, round_: Round, slices: Sequence[Slice], parts: Sequence[Part], path: Path) -> Assembled:
    """Write the frame to ``path``; an error where the round must stop for what its inputs are."""
    skew = _skew(work, parts)
    losses = require_judged(work.settings, round_.received, _losses(round_, parts), skew)
    judged = [part for part in parts if part.rows]
    keep, hashes = _fresh(work, round_, judged)
    masks, cuts, before = _masks(judged, keep), cuts_of(work.settings), None
    found: dict[str, tuple[str, ...]] = {}
    if cuts:
        with work.store.read() as connection:
            before = rounds.slicing_before(connection, round_)
        found = {cut.name: _levels(cut, judged, masks, before) for cut in cuts if cut.of == "column"}
    count = write_frame(path, _tables(judged, masks, levels_of(round_.plan), found))
    classes = next((part.classes for part in judged if part.classes is not None), None)
    divides = cuts and count
    return Assembled(
        count,
        losses,
        sum(part.rows for part in judged) - count,
        hashes,
        None if skew is None else skew.share,
        classes,
        _span(work, slices, parts),
        sum(part.span.late for part in parts),
        slicing_of(work.settings, path, found, before, classes, round_.plan.budget) if divides else None,
    )


def _losses(round_: Round, parts: Sequence[Part]) -> Unscorable:
    """What was lost, of all parts; of rows that could not be read no more than the round still misses of those it
    received: where the log names versions, the rounds of other versions miss others."""
    reasons: Counter[str] = functools.reduce(operator.add, (Counter(part.losses) for part in parts), Counter())
    unreadable: Counter[str] = functools.reduce(operator.add, (Counter(part.unreadable) for part in parts), Counter())
    left = max(0, round_.received - sum(part.stop - part.start for part in parts))
    for reason, times in unreadable.items():
        lost = min(times, left)
        reasons[reason] += lost
        left -= lost
    return Unscorable(bounded(+reasons), [gap for part in parts for gap in part.gaps])


def _skew(work: Toolbox, parts: Sequence[Part]) -> Skew | None:
    """How production's predictions compare with the model's; None where it logged none."""
    column = work.settings.columns.prediction
    counted = [part.skew for part in parts if part.skew is not None]
    if counted:
        return functools.reduce(operator.add, counted)
    judged = [part for part in parts if part.rows]
    if column is None or not any(OWN in part.names for part in judged):
        return None
    said, own, known = zip(*map(_numbers, judged), strict=True)
    return skew_of_numbers(column, np.concatenate(known), np.concatenate(said), np.concatenate(own))


def _numbers(part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """What is judged, what the model itself says, and where production logged a number."""
    if OWN not in part.names:
        own = part.columns(["prediction"])["prediction"].to_numpy()
        return own, own, np.zeros(len(own), dtype=bool)
    table = part.columns(["prediction", OWN, LOGGED])
    return table["prediction"].to_numpy(), table[OWN].to_numpy(), table[LOGGED].to_numpy()


def _fresh(
    work: Toolbox, round_: Round, parts: Sequence[Part]
) -> tuple[NDArray[np.bool_] | None, NDArray[np.uint64] | None]:
    """Which inputs are met for the first time (None: all), and their hashes."""
    if work.settings.columns.id is None:
        return None, None
    hashes = np.empty(sum(part.rows for part in parts), np.uint64)
    done = 0
    for part in parts:
        hashes[done : done + part.rows] = part.columns([HASH])[HASH].to_numpy()
        done += part.rows
    return first_met(work, round_, hashes)


Masks = Sequence[NDArray[np.bool_] | None]


def _masks(parts: Sequence[Part], keep: NDArray[np.bool_] | None) -> Masks:
    """Which rows of each part are kept; None: all."""
    starts = np.cumsum([0, *(part.rows for part in parts)])
    return [
        None if keep is None else keep[start : start + part.rows] for start, part in zip(starts, parts, strict=False)
    ]


def _levels(cut: Cut, parts: Sequence[Part], masks: Masks, before: Slicing | None) -> tuple[str, ...]:
    """The levels that a column of the log has over all parts."""
    counts: Counter[str] = Counter()
    for part, mask in zip(parts, masks, strict=True):
        counts += counted(_texts(part, mask, SLICE + cut.name))
    size = sum(part.rows if mask is None else int(mask.sum()) for part, mask in zip(parts, masks, strict=True))
    return levels_of_cut(cut, counts, size, known_of(before, cut.name))


def _texts(part: Part, mask: NDArray[np.bool_] | None, name: str) -> pa.DictionaryArray:
    return one_dictionary(_kept(part, [name], mask)[name])


def _tables(
    parts: Sequence[Part], masks: Masks, levels: int | None, cuts: Mapping[str, tuple[str, ...]]
) -> Iterator[pa.Table]:
    """The frame, part by part."""
    if not parts:
        return
    names = list(dict.fromkeys(name for part in parts for name in part.names if name.startswith((VARIABLE, CHANCE))))
    coding = None if levels is None else Levels.of(map(_neurons, parts, masks), levels)
    for part, mask in zip(parts, masks, strict=True):
        table = _whole(part, ["id", "slice", "row", "prediction", *names], mask)
        for name, of in cuts.items():
            table = table.append_column(SLICE + name, coded(_texts(part, mask, SLICE + name), of))
        if coding is not None:
            table = table.append_column(ACTIVATIONS, levels_as_bytes(coding.code(_neurons(part, mask))))
        yield table.replace_schema_metadata(None)


def _whole(part: Part, names: Sequence[str], mask: NDArray[np.bool_] | None) -> pa.Table:
    """The columns of a part, with those that only other parts have."""
    there = set(part.names)
    table = _kept(part, [name for name in names if name in there], mask)
    for name in names:
        if name not in there:
            table = table.append_column(name, pa.array(lacking(name, table.num_rows)))
    return table.select(list(names))


def _neurons(part: Part, mask: NDArray[np.bool_] | None) -> NDArray[np.float32]:
    return from_bytes(_kept(part, [ACTIVATIONS], mask)[ACTIVATIONS])


def _kept(part: Part, names: Sequence[str], mask: NDArray[np.bool_] | None) -> pa.Table:
    table = part.columns(names)
    return table if mask is None or mask.all() else table.filter(pa.array(mask))


def _span(work: Toolbox, slices: Sequence[Slice], parts: Sequence[Part]) -> tuple[datetime, datetime] | None:
    """When the first and the last of the inputs were answered, or arrived where no time was logged."""
    span = functools.reduce(operator.or_, (part.span for part in parts), Span())
    bounds = span.bounds(work.settings.columns.timestamp)
    arrived = [piece.arrived_at for piece in slices]
    return bounds or ((min(arrived), max(arrived)) if arrived else None)
