"""Truth that arrives by itself becomes the labels of drawn inputs, whenever it comes: before the draw, or after it."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Source
from opmon.config import MonitorSettings
from opmon.config.truth import TruthSettings
from opmon.jobs.counting import bounded
from opmon.jobs.ids import hashes_of
from opmon.jobs.moments import moments_of
from opmon.problems import traits
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds, truths
from opmon.store.rounds import Round
from opmon.store.truths import Known, Read
from opmon.truth.awaited import Waiting
from opmon.truth.kept import REASONS, Books, Kept
from opmon.truth.reading import Found, Vocabulary, column_of, known_at, read_truths
from opmon.truth.truths import Truths
from opmon.types import Slice
from opmon.wording import told

log = logging.getLogger(__name__)

ROWS = 1_000_000
"""About so many rows of a truth source are read at a time."""
FOLDER = "truth"
POSITION = "position"
"""The column with the place of an input in the frame."""


def pull_truths(work: Toolbox) -> int:
    """Read what the source of truths has that was not read yet; gives how many truths those are.

    First the drawn inputs are labelled, then the truths are kept, which moves the position: after a kill in between
    they are read again, and labels that are there already stay as they are.
    """
    source = work.settings.reads_truth
    if source is None:
        return 0
    kept, pulled = kept_truths(work), 0
    while slices := source.pending(_stands(source, kept), ROWS):
        pulled += _pull(work, kept, source, slices)
    return pulled


def judge_truths(work: Toolbox, round_: Round) -> None:
    """Count what was kept before a round told the model's classes and is none of them, and no more what now is one."""
    if work.settings.reads_truth is None:
        return
    kept = kept_truths(work)
    before, vocabulary = kept.books(), vocabulary_of(work.settings, round_.classes)
    if not vocabulary.by_model or vocabulary.classes is None:
        return
    refused = kept.judge(vocabulary)
    books = kept.books()
    if books == before:
        return
    with work.write() as connection:
        truths.note(connection, work.name, Read(work.clock(), books.known_until, books.taken, books.refused))
    _warn(work, refused, [])


def kept_truths(work: Toolbox) -> Kept:
    """Where the truths of the monitor are kept; those of another source, other columns or other words lie elsewhere."""
    settings = work.settings
    said = None if settings.truth is None else settings.truth.model_dump(mode="json", exclude={"keep"})
    words = [said, settings.columns.id, settings.problem, settings.classes]
    words += [settings.scale] if settings.scale else []
    of = json.dumps(words, sort_keys=True, default=str)
    return Kept(work.folder / FOLDER / f"{work.name}@{hashlib.sha256(of.encode()).hexdigest()[:8]}")


def truths_of(work: Toolbox, round_: Round, hashes: NDArray[np.uint64]) -> Truths:
    """The truths of the inputs with these hashes, in the classes of their round."""
    return kept_truths(work).find(hashes, vocabulary_of(work.settings, round_.classes))


def waiting(work: Toolbox) -> Waiting:
    """The rounds whose truths are awaited."""
    return Waiting(kept_truths(work).folder / "awaited")


def truths_of_drawn(
    work: Toolbox, round_: Round, truth: TruthSettings, inputs: pa.Table, rows: pa.Table
) -> dict[int, Known]:
    """What is known of drawn inputs by their places in the frame; ``inputs`` has their ids, ``rows`` are the log's."""
    positions = inputs[POSITION].to_pylist()
    if truth.column is not None:
        known = _in_the_log(work, round_, truth, rows)
        return {position: each for position, each in zip(positions, known, strict=True) if each is not None}
    hashes = hashes_of(inputs["id"].combine_chunks())
    found = truths_of(work, round_, hashes)
    kept = [Known(str(label), at) for label, at in zip(found.labels.to_pylist(), found.at.to_pylist(), strict=True)]
    places = found.places(hashes).tolist()
    return {position: kept[place] for position, place in zip(positions, places, strict=True) if place >= 0}


def answered_at(rows: pa.Table, name: str) -> list[datetime | None]:
    """When each of these rows of the log was answered, as its column ``name`` says; None where it does not."""
    if name not in rows.column_names:
        return [None] * rows.num_rows
    moments: list[datetime | None] = moments_of(rows[name].combine_chunks(), name).to_pylist()
    return moments


def vocabulary_of(settings: MonitorSettings, classes: Sequence[str] | None) -> Vocabulary:
    """What truths of the monitor may say; ``classes`` are those of a model, where they are not configured."""
    return Vocabulary(settings.replies(classes), settings.class_names is None and traits(settings.problem).of_classes)


def _in_the_log(work: Toolbox, round_: Round, truth: TruthSettings, rows: pa.Table) -> list[Known | None]:
    """The truth that each row of the log has with it; known when it was answered, where nothing says since when."""
    now, answered = work.clock(), work.settings.columns.timestamp
    assert truth.column is not None
    named, refused = vocabulary_of(work.settings, round_.classes).named(column_of(rows, truth.column))
    if refused:
        log.warning(
            "round %d of %s: truths of drawn inputs that cannot be taken: %s", round_.number, work.name, told(refused)
        )
    at: Sequence[datetime | None] = [None] * rows.num_rows
    if truth.at is not None:
        at = known_at(rows, truth.at, now).to_pylist()
    elif answered is not None:
        at = answered_at(rows, answered)
    pairs = zip(named.to_pylist(), at, strict=True)
    return [None if label is None else Known(str(label), moment or now) for label, moment in pairs]


def _stands(source: Source, kept: Kept) -> Mapping[str, str]:
    return kept.books().positions or source.begins()


def _pull(work: Toolbox, kept: Kept, source: Source, slices: Sequence[Slice]) -> int:
    settings, now, books = work.settings, work.clock(), kept.books()
    truth = settings.truth
    assert truth is not None
    columns = (truth.id or settings.columns.id or "", truth.label or "", truth.at)
    vocabulary = vocabulary_of(settings, _classes(work))
    found = read_truths(source, slices, columns, vocabulary, now)
    stops = {piece.part: piece.stop for piece in slices}
    known = max(filter(None, (books.known_until, found.known_until)), default=None)
    new = Books(
        {**(books.positions or source.begins()), **stops},
        known,
        books.taken + len(found.truths),
        dict(bounded(Counter(books.refused) + found.refused, REASONS)),
        books.unjudged or vocabulary.is_open,
    )
    with work.write() as connection:
        problems = truths.record_named(connection, work.name, _by_id(found), now)
        truths.note(connection, work.name, Read(now, new.known_until, new.taken, new.refused))
    waiting(work).hear(found.truths.hashes, now - truth.keep)
    kept.add(found.words, new, now - truth.keep, each_word=vocabulary.by_model)
    _warn(work, found.refused, problems)
    return len(found.truths)


def _warn(work: Toolbox, refused: Counter[str], problems: Sequence[str]) -> None:
    if refused or problems:
        said = [told(refused)] if refused else []
        log.warning("%s: truths that cannot be taken: %s", work.name, "; ".join([*said, *problems[:3]]))


def _by_id(found: Found) -> dict[str, list[Known]]:
    """What was said of each input, the newest last."""
    said: dict[str, list[Known]] = {}
    columns = (each.to_pylist() for each in (found.ids, found.words.labels, found.words.at))
    for key, label, at in zip(*columns, strict=True):
        said.setdefault(key, []).append(Known(str(label), at))
    return said


def _classes(work: Toolbox) -> Sequence[str] | None:
    """The classes of the model, where a round has told them."""
    if work.settings.class_names is not None:
        return None
    with work.store.read() as connection:
        newest = rounds.newest(connection, work.name, 5)
    return next((round_.classes for round_ in newest if round_.classes), None)
