"""Whether truth that arrives by itself can be read, and finds the inputs that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from opmon.checks.finding import Finding, trouble
from opmon.checks.sample import Sample
from opmon.config import MonitorSettings
from opmon.errors import OpmonError
from opmon.jobs.ids import hashes_of, ids_of
from opmon.problems import traits
from opmon.scales import ALLOWED
from opmon.stages.truth import ROWS, vocabulary_of
from opmon.truth.reading import Found, Vocabulary, column_of, read_truths
from opmon.types import Slice
from opmon.wording import counted, told

_FEW, _MANY = 10, 200
"""Of so few classes, each should be among so many truths."""


def look_at_truth(
    monitor: MonitorSettings, sample: Sample | None, classes: Sequence[str] | None = None
) -> Finding | None:
    """How many of the sampled inputs have a truth, and which truths cannot be used; None if none is configured.

    ``classes`` are those of the model, where the configuration does not name them.
    """
    if monitor.truth is None:
        return None
    about = f"{monitor.name}: truth"
    before = None if sample is None or sample.round is None else sample.round.classes
    vocabulary = vocabulary_of(monitor, classes or before)
    try:
        if monitor.truth.column is not None:
            return None if sample is None else _of_the_log(about, monitor.truth.column, sample, vocabulary)
        return _of_a_source(about, monitor, sample, vocabulary)
    except OpmonError as exc:
        return trouble(about, exc, "Rounds go on without it.")


def _of_the_log(about: str, name: str, sample: Sample, vocabulary: Vocabulary) -> Finding:
    named, refused = vocabulary.named(column_of(sample.rows, name))
    known = len(named) - named.null_count
    message = f"{known:,} of {counted(len(named), 'input')} have a truth in their own row"
    if refused:
        words = f"{message}; others cannot be taken: {told(refused)}{_allowed(vocabulary)}"
        return _unlike(about, words) if not known else Finding(about, "warning", words)
    return Finding(about, "ok", message)


def _of_a_source(about: str, monitor: MonitorSettings, sample: Sample | None, vocabulary: Vocabulary) -> Finding:
    source, truth = monitor.reads_truth, monitor.truth
    assert source is not None
    assert truth is not None
    slices = _newest(source.pending(source.begins()))
    if not slices:
        return Finding(about, "ok", "nothing has arrived yet")
    columns = (truth.id or monitor.columns.id or "", truth.label or "", truth.at)
    found = read_truths(source, slices, columns, vocabulary, datetime.now(UTC))
    message = f"{counted(len(found.truths), 'input')} have a truth"
    level = "warning" if found.refused else "ok"
    if sample is not None and len(found.truths):
        joined, message = _joined(monitor, sample, found)
        level = level if joined else "warning"
    refused = f"; rows that cannot be taken: {told(found.refused)}{_allowed(vocabulary)}" if found.refused else ""
    if found.refused and not len(found.truths):
        return _unlike(about, message + refused)
    silent = _never_said(found, vocabulary)
    return Finding(about, "warning" if level == "warning" or silent else "ok", message + refused + silent)


def _never_said(found: Found, vocabulary: Vocabulary) -> str:
    """The classes that no truth says, of a few classes and many truths: does the source tell of some classes alone?"""
    classes, said = vocabulary.classes or (), set(found.truths.labels.unique().to_pylist())
    silent = sorted(set(classes) - said)
    if not silent or len(classes) > _FEW or len(found.truths) < _MANY:
        return ""
    named = ", ".join(map(repr, silent))
    return f"; none of {len(found.truths):,} truths says {named}: truth of some classes alone tells of those alone"


def _allowed(vocabulary: Vocabulary) -> str:
    """What a truth may say."""
    replies = vocabulary.replies
    if traits(replies.problem).of_numbers:
        return "; a truth must be a finite number, such as 3.5"
    if replies.problem == "judged":
        return f"; a truth must be {ALLOWED[replies.scale or 'pass_fail']}"
    classes = sorted(vocabulary.classes or ())
    listed = f"{', '.join(map(repr, classes[:10]))}{', …' if classes[10:] else ''}"
    return f"; the classes are {listed}. 'classes' maps other words to them" if classes else ""


def _unlike(about: str, message: str) -> Finding:
    """The finding of truths of which none can be taken: another column, or another vocabulary, is what is needed."""
    return Finding(about, "problem", message, needs_change=True)


def _joined(monitor: MonitorSettings, sample: Sample, found: Found) -> tuple[int, str]:
    """How many of the sampled inputs have a truth, as a number and in words."""
    ids = ids_of(column_of(sample.rows, monitor.columns.id or ""), monitor.columns.id)
    joined = int((found.truths.places(hashes_of(ids)) >= 0).sum())
    message = f"{joined:,} of {counted(len(ids), 'input')} looked at have a truth"
    if joined:
        return joined, message
    here, there = (pa.array(each).slice(0, 1).to_pylist()[0] for each in (ids, found.ids))
    return 0, f"{message}: the log says {here!r} and the truths {there!r}. Is truth.id the column with the input's id?"


def _newest(slices: list[Slice]) -> list[Slice]:
    """The last slices, of about as many rows as are read at a time."""
    kept: list[Slice] = []
    for piece in reversed(slices):
        if kept and sum(each.rows for each in kept) + piece.rows > ROWS:
            break
        kept.append(piece)
    return kept[::-1]
