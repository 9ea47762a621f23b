"""Where the truth of all inputs of a round has come, its measure is a census, and no estimate from its draws.

The draw is there nevertheless: rules that bet on draws bet on the drawn inputs, with the truths as their labels, and
what they promise holds as it does without a census. Rules that look at estimates see the census.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from opmon.config.truth import TruthSettings
from opmon.errors import NotFoundError
from opmon.estimators.census import METHOD, census, is_census
from opmon.jobs.ids import hashes_of
from opmon.stages.beside import beside_frame, frame_column, frame_path, losses_of
from opmon.stages.toolbox import Toolbox
from opmon.stages.truth import kept_truths, vocabulary_of, waiting
from opmon.store import rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.truth.awaited import Awaited
from opmon.types import Estimate, Floats


def due(work: Toolbox, connection: Connection) -> list[Round]:
    """The rounds that have become a census, and are not told as one."""
    if work.settings.reads_truth is None:
        return []
    problem, found = work.settings.problem, []
    for each in waiting(work).all():
        if is_census(each.size, len(each.missing), problem):
            with suppress(NotFoundError):  # it is of another database
                round_ = rounds.get(connection, work.name, int(each.name.partition("-")[0]))
                if _name(round_) == each.name and round_.state != RoundState.ABANDONED:
                    found.append(round_)
    return found


def measured(
    work: Toolbox, round_: Round, truth: TruthSettings, known: Revision | None, labels_seen: int, settled: bool
) -> Estimate | None:
    """The census of a round; None where truths are missing of it, or nothing is new. ``settled``: all its draws are
    spoken of."""
    was_census = known is not None and known.estimate.method == METHOD
    fresh = known is None or known.estimate.provisional or known.labels_seen != labels_seen
    if was_census and not fresh:
        told(work, round_)
        return None
    of_the_log = truth.column is not None
    if not ((fresh and settled) if of_the_log else (was_census or _has_all(work, round_))):
        return None
    path = frame_path(work, round_)
    losses = _of_the_log(work, round_, truth, path) if of_the_log else _joined(work, round_, path)
    if not len(losses):
        return None
    found = census(losses, round_.plan.problem, round_.plan.level, sampled=round_.plan.thinning is not None)
    return None if found is None else replace(found, quantity=round_.plan.quantity)


def told(work: Toolbox, round_: Round) -> None:
    """The round is told as a census: it waits for no truth any more."""
    if work.settings.reads_truth is not None:
        waiting(work).forget(_name(round_))


def _has_all(work: Toolbox, round_: Round) -> bool:
    """Whether hardly a truth of its inputs is missing; what is missing is kept from the first time on."""
    name = _name(round_)
    awaited = waiting(work).get(name)
    if awaited is None and round_.state.is_over:
        return False
    if awaited is None:
        hashes = np.sort(hashes_of(frame_column(frame_path(work, round_), "id")))
        missing = hashes[kept_truths(work).find(hashes).places(hashes) < 0]
        awaited = Awaited(name, missing, len(hashes), work.clock())
        waiting(work).put(awaited)
    return is_census(awaited.size, len(awaited.missing), round_.plan.problem)


def _name(round_: Round) -> str:
    """The name of a round that one of the same number in another database has not."""
    return f"{round_.number}-{zlib.crc32(round_.key.encode()):08x}"


def _joined(work: Toolbox, round_: Round, path: Path) -> Floats:
    hashes = hashes_of(frame_column(path, "id"))
    found = kept_truths(work).find(hashes)
    places = found.places(hashes)
    labels = found.labels.take(pa.array(np.where(places < 0, 0, places), mask=places < 0))
    return losses_of(round_, labels, frame_column(path, "prediction"))


def _of_the_log(work: Toolbox, round_: Round, truth: TruthSettings, path: Path) -> Floats:
    """The truth of each input from its own row, found by the slice and the row that the frame keeps."""
    assert truth.column is not None
    said, vocabulary = frame_column(path, "prediction"), vocabulary_of(work.settings, round_.classes)
    found = np.full(len(said), np.nan)
    for positions, values in beside_frame(work, round_, path, truth.column):
        found[positions] = losses_of(round_, vocabulary.named(values)[0], said.take(pa.array(positions)))
    return found
