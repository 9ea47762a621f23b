"""A few inputs as opmon sees them, and what the model and the log call the classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from opmon.config import MonitorSettings
from opmon.jobs.model import Answering
from opmon.jobs.moments import moments_of
from opmon.problems import traits
from opmon.scoring.flavor.scorer import FlavorScorer
from opmon.scoring.inputs.columns import decoded
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.spellings import Spellings
from opmon.types import Batch
from opmon.values import canonical_class
from opmon.wording import counting

_SHOWN, _VARIABLES, _WIDTH = 5, 3, 24

Table = tuple[tuple[str, ...], ...]


def seen(
    monitor: MonitorSettings, batches: Sequence[Batch], scored: Sequence[Scored], judged: pa.Table | None
) -> Table:
    """The first rows that can be scored, under a row of headings; ``judged`` has production's own answers."""
    found = next(((batch, part) for batch, part in zip(batches, scored, strict=True) if len(part.rows)), None)
    if found is None:
        return ()
    batch, part = found
    places = (part.rows - batch.first_row)[:_SHOWN]
    columns: dict[str, Sequence[object]] = {}
    if monitor.columns.id is not None:
        columns["id"] = batch.rows.column(monitor.columns.id).take(pa.array(places)).to_pylist()
    if monitor.columns.timestamp is not None:
        times = batch.rows.column(monitor.columns.timestamp).take(pa.array(places))
        columns["time"] = times_shown(times, monitor.columns.timestamp)
    own = part.predictions[:_SHOWN].tolist()
    answers = own if judged is None else judged["prediction"].slice(0, len(own)).to_pylist()
    columns["judged"] = answers
    if judged is not None and any(mine != theirs for mine, theirs in zip(own, answers, strict=True)):
        columns["the model says"] = ["" if mine == theirs else mine for mine, theirs in zip(own, answers, strict=True)]
    named = [*monitor.logged_variables, *part.variables]
    for name in list(dict.fromkeys(named))[:_VARIABLES]:
        columns[name] = part.variables[name][:_SHOWN].tolist()
    return (tuple(columns), *(tuple(map(_cell, row)) for row in zip(*columns.values(), strict=True)))


def times_shown(values: pa.Array, name: str) -> list[object]:
    """Times as opmon understands them, to the second, which is enough to know them again; what is none as it is.

    >>> times_shown(pa.array([1772359200.25, None]), "timestamp_ms")
    ['2026-03-01 10:00:00', None]
    >>> times_shown(pa.array(["2026-03-01T12:00:00+02:00", "soon"]), "at")
    ['2026-03-01 10:00:00', 'soon']
    """
    moments = moments_of(values, name).to_pylist()
    pairs = zip(moments, values.to_pylist(), strict=True)
    return [value if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}" for moment, value in pairs]


def _cell(value: object) -> str:
    text = counting(value, 4) if isinstance(value, float) else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def called(monitor: MonitorSettings, scorer: Answering, logged: Sequence[pa.Array]) -> str:
    """The words of the model and the log for the classes; empty where these are the classes' names."""
    spelt = monitor.spellings
    own = [*_renamed(_own_names(scorer), monitor.class_names, spelt)]
    words = [f"what the model calls {mine} is called {name}" for mine, name in own]
    if monitor.columns.threshold is None and traits(monitor.problem).one_class:
        words += [f"what the log calls {said} is called {name}" for said, name in _of_log(logged, spelt)]
    return "; ".join(words[:6]) + ("; …" if len(words) > 6 else "")


def _own_names(scorer: Answering) -> tuple[str, ...]:
    if isinstance(scorer, Scorer):
        return scorer.outputs.own_classes or ()
    if isinstance(scorer, FlavorScorer):
        return tuple(canonical_class(name) for name in scorer.worker.told.get("classes") or ())
    return ()


def _renamed(own: tuple[str, ...], names: tuple[str, ...] | None, spelt: Spellings) -> Iterator[tuple[str, str]]:
    if names is None or len(own) != len(names):
        return
    by_spelling = spelt.all_named(own, names)
    called = by_spelling or (own if set(own) == set(names) else names)
    yield from ((mine, name) for mine, name in zip(own, called, strict=True) if mine != name)


def _of_log(logged: Sequence[pa.Array], spelt: Spellings) -> Iterator[tuple[str, str]]:
    texts: dict[str, None] = {}
    for column in logged:
        for value in decoded(column).unique().to_pylist():
            if value is not None and not (isinstance(value, float) and not np.isfinite(value)) and str(value).strip():
                texts[canonical_class(value)] = None
    yield from ((text, spelt.name(text)) for text in texts if spelt.name(text) != text)
