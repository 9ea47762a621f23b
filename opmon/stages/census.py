"""Where the truth of all inputs of a round has come, its measure is a census, and no estimate from its draws.

So are its slices. Rules that bet on draws bet on every input, each drawn once: the losses of a simple random sample may
be as large as the frame, so what they promise holds, and it also holds where the inputs are taken for a sample of all
that the model may meet. Rules that look at estimates see the census.
"""

from __future__ import annotations

import logging
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from opmon.config.truth import TruthSettings
from opmon.errors import NotFoundError, OpmonError
from opmon.estimators.census import METHOD, census, is_census
from opmon.jobs.ids import hashes_of
from opmon.problems import traits
from opmon.stages.beside import beside_frame, frame_column, frame_path, losses_of
from opmon.stages.measures import labelled, main_of, of_all
from opmon.stages.slicing import with_slices
from opmon.stages.toolbox import Toolbox
from opmon.stages.truth import truths_of, vocabulary_of, waiting
from opmon.store import rounds
from opmon.store.engine import Connection
from opmon.store.revisions import Revision
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.truth.awaited import Awaited
from opmon.types import Draw, Estimate, Floats, Sample
from opmon.types.labelled import Labelled

log = logging.getLogger(__name__)


def due(work: Toolbox, connection: Connection) -> list[Round]:
    """The rounds that have become a census, and are not told as one."""
    if work.settings.reads_truth is None:
        return []
    problem, found = work.settings.problem, []
    for each in waiting(work).all():
        if is_census(each.size, len(each.missing), problem):
            with suppress(NotFoundError):  # it is of another database
                round_ = rounds.get(connection, work.name, int(each.name.partition("-")[0]))
                if _name(round_) == each.name and round_.state != RoundState.ABANDONED and not round_.labels_pruned_at:
                    found.append(round_)
    return found


@dataclass(frozen=True, eq=False)
class Whole:
    """A round of which every input has its truth."""

    estimate: Estimate
    rows: Labelled | None
    """What is known of all inputs, where a measure beside the usual one asks; None where hardly a truth is missing."""
    sample: Sample | None
    """Every input, drawn once; None where the log itself is a sample of the traffic."""
    said: pa.Array
    """What the model answered to each input."""


def measured(
    work: Toolbox, round_: Round, truth: TruthSettings, known: Revision | None, labels_seen: int, settled: bool
) -> Whole | None:
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
    whole, main = _whole(work, round_, truth), main_of(round_.plan)
    if whole is None or main is None:
        return whole
    if whole.rows is None or main.measure.needs_scores:
        told(work, round_)  # its draws tell of it, and nothing more will
        return None
    return replace(whole, estimate=of_all(whole.rows, main.measure, main.quantity, round_.plan))


def of_estimate(work: Toolbox, round_: Round, estimate: Estimate) -> Whole | None:
    """What is known of all inputs of a round that was told as a census; None where it was not, or no more is."""
    truth = work.settings.truth
    if truth is None or estimate.method != METHOD:
        return None
    try:
        return _whole(work, round_, truth)
    except OpmonError as exc:  # its frame, or its part of the log, was removed since
        log.info("round %d is judged by its draws: %s", round_.number, exc)
        return None


def _whole(work: Toolbox, round_: Round, truth: TruthSettings) -> Whole | None:
    """All inputs of a round with their truths, and their usual measure; None where too many are missing."""
    path = frame_path(work, round_)
    labels = _of_the_log(work, round_, truth, path) if truth.column is not None else _joined(work, round_, path)
    said = frame_column(path, "prediction")
    losses, sampled = losses_of(round_, labels, said), round_.plan.thinning is not None
    if not len(losses):
        return None
    found = census(losses, round_.plan.problem, round_.plan.level, sampled=sampled)
    if found is None:
        return None
    complete = not np.isnan(losses).any() and not sampled
    rows = _rows(round_, labels, said) if complete and round_.plan.measures else None
    sample = None if sampled else _sample(round_, path, losses)
    return Whole(replace(found, quantity=round_.plan.usual_quantity), rows, sample, said)


def _sample(round_: Round, path: Path, losses: Floats) -> Sample:
    """Every input of a frame, drawn once, with the levels of its slices."""
    draw = Draw("srs", len(losses), np.arange(len(losses)), constants={"replacement": np.array(False)})
    draw = draw if round_.slicing is None else with_slices(round_.slicing, path, draw)
    return Sample(draw, losses, round_.plan.problem)


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
        missing = hashes[truths_of(work, round_, hashes).places(hashes) < 0]
        awaited = Awaited(name, missing, len(hashes), work.clock())
        waiting(work).put(awaited)
    return is_census(awaited.size, len(awaited.missing), round_.plan.problem)


def _name(round_: Round) -> str:
    """The name of a round that one of the same number in another database has not."""
    return f"{round_.number}-{zlib.crc32(round_.key.encode()):08x}"


def _rows(round_: Round, labels: pa.Array, said: pa.Array) -> Labelled:
    """What is known of all inputs, of which each has its truth."""
    answered = np.ones(len(said), dtype=np.bool_)
    if traits(round_.plan.problem).of_numbers:
        numbers = (column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in (labels, said))
        return Labelled(answered, *numbers)
    truth, answers = (column.cast(pa.string()).to_pylist() for column in (labels, said))
    return labelled(round_, answered, truth, answers)


def _joined(work: Toolbox, round_: Round, path: Path) -> pa.Array:
    """The truth of each input, joined by its id; null where it has not come."""
    hashes = hashes_of(frame_column(path, "id"))
    found = truths_of(work, round_, hashes)
    places = found.places(hashes)
    return found.labels.take(pa.array(np.where(places < 0, 0, places), mask=places < 0))


def _of_the_log(work: Toolbox, round_: Round, truth: TruthSettings, path: Path) -> pa.Array:
    """The truth of each input from its own row, found by the slice and the row that the frame keeps; null without."""
    assert truth.column is not None
    vocabulary = vocabulary_of(work.settings, round_.classes)
    size = len(frame_column(path, "row"))
    pieces, places = [], []
    for positions, values in beside_frame(work, round_, path, truth.column):
        pieces.append(vocabulary.named(values)[0])
        places.append(positions)
    if not pieces:
        return pa.nulls(size, pa.string())
    labels, at = pa.chunked_array(pieces).combine_chunks(), np.full(size, -1)
    at[np.concatenate(places)] = np.arange(len(labels))
    return labels.take(pa.array(np.where(at < 0, 0, at), mask=at < 0))
