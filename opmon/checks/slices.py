"""Whether the columns that divide the inputs into slices are there, and what they would be divided into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from opmon.checks.finding import Finding
from opmon.checks.sample import Sample
from opmon.config import MonitorSettings
from opmon.config.slices import cuts_of
from opmon.jobs.slices import texts_of
from opmon.scoring.inputs.columns import decoded
from opmon.stages.slicing import coded, counted, levels_of
from opmon.types.slicing import MISSING, OTHER, Cut
from opmon.wording import meant, nearest, percent

_SHOWN = 6


def look_at_slices(monitor: MonitorSettings, sample: Sample | None) -> Iterator[Finding]:
    """What the sampled inputs are divided into by each column of the log."""
    cuts = [cut for cut in cuts_of(monitor) if cut.of == "column"]
    if sample is None or not sample.rows.num_rows:
        return
    for cut in cuts:
        yield _look(f"{monitor.name}: slices", cut, sample.rows)


def _look(about: str, cut: Cut, rows: pa.Table) -> Finding:
    names = rows.column_names
    if cut.name not in names:
        hint = meant(nearest(cut.name, names, likeness=0.5))
        message = f"the log has no column {cut.name!r}{hint}; there are: {', '.join(names)}. Correct 'slices'"
        return Finding(about, "problem", message, needs_change=True)
    column = decoded(rows[cut.name].combine_chunks())
    if pa.types.is_nested(column.type):
        message = f"{cut.name!r} holds {column.type}, and a slice is of one value: name what is inside, such as "
        return Finding(about, "problem", f"{message}{cut.name}.key", needs_change=True)
    texts = texts_of(pa.record_batch({cut.name: column}), cut)
    counts = counted(texts)
    size = len(texts)
    levels = levels_of(cut, counts, size, None)
    found = Counter(coded(texts, levels).to_pylist())
    shown = [f"{level} {percent(found[level] / size, 0)}" for level in levels if found[level]]
    more = f", and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    told = f"{cut.name}: {', '.join(shown[:_SHOWN])}{more}, of the first {size:,} inputs"
    return Finding(about, *_judged(cut, found, size, told, counts, len(texts.dictionary), column.type))


def _judged(
    cut: Cut, found: Counter[str], size: int, told: str, counts: Counter[str], different: int, kind: pa.DataType
) -> tuple[Literal["ok", "warning"], str]:
    if found[MISSING] == size:
        what = f"; edges cut numbers, and it holds {kind}" if cut.edges is not None else ""
        return "warning", f"no input has a value of {cut.name}{what}"
    if found[OTHER] + found[MISSING] == size:
        if cut.values is not None:
            often = ", ".join(value for value, _ in counts.most_common(_SHOWN))
            return "warning", f"{cut.name}: none of its values is there; the log's most frequent ones: {often}"
        message = (
            f"{cut.name} has {different:,} different values in {size:,} inputs, none of them 1 % of these: all are "
        )
        return "warning", message + f"in one slice, {cut.name} {OTHER}. Name those that matter in values, or edges"
    return "ok", told
