"""opened → scored: the round's inputs are scored by jobs, wherever the executor runs them, and become its frame."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from opmon.errors import OpmonError, OutOfMemory, SourceError, UnavailableError
from opmon.jobs.parts import Part
from opmon.jobs.score import heard, score
from opmon.scoring.scorer import Scorer
from opmon.stages import losses
from opmon.stages.assembly import Assembled, assemble
from opmon.stages.drift import advise_drift
from opmon.stages.expecting import expected_of
from opmon.stages.frames import NAME
from opmon.stages.originals import Agreement, may_be_asked, require_agreement
from opmon.stages.score_jobs import jobs_of
from opmon.stages.timelines import open_runs
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds, seen
from opmon.store.rounds import Round
from opmon.store.slices import slices_of
from opmon.store.states import RoundState
from opmon.types import Slice
from opmon.wording import told

log = logging.getLogger(__name__)

PARTS = "parts"


def score_round(work: Toolbox, round_: Round) -> None:
    with work.store.read() as connection:
        slices = slices_of(connection, round_.id)
    compared = _compared(work, round_, slices)
    path = work.round_folder(round_) / NAME
    with _kept_parts(work.round_folder(round_) / PARTS) as folder:
        parts = _scored(work, round_, slices, folder)
        found = _assembled(work, round_, slices, parts, path)
        timeline, own = open_runs(work, round_)
        work.registry.log_artifact(own, path)
        if compared is not None:
            work.registry.tag_run(own, {"opmon.conversion": str(compared)})
        drift = advise_drift(work, round_, own, parts, path, found.slicing)
        foreseen = expected_of(work, round_, path)
    starts_at, ends_at = found.span or (None, None)
    late = {"answered before the end of the round before": found.late}
    left_out = losses.added(round_.losses, {"unscorable": found.losses, "late": late})
    with work.write() as connection:
        seen.remember(connection, round_, found.hashes)
        rounds.update(
            connection,
            round_.id,
            state=RoundState.SCORED,
            inputs=found.inputs,
            unscorable=found.losses.total(),
            losses=dict(left_out) or None,
            duplicates=found.duplicates,
            skew=found.skew,
            starts_at=starts_at,
            ends_at=ends_at,
            classes=None if found.classes is None else list(found.classes),
            spellings=dict(work.settings.spellings.names) or None,
            sliced=None if found.slicing is None else found.slicing.stored(),
            drift=drift,
            expected=foreseen,
            run_id=own,
            timeline_run_id=timeline,
            problem=None,
        )
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _kept_parts(folder: Path) -> Iterator[Path]:
    """The folder of the parts: it outlives a kill and what did not answer, and goes with what must be read anew."""
    try:
        yield folder
    except UnavailableError:
        raise
    except SourceError as exc:
        shutil.rmtree(folder, ignore_errors=True)
        if type(exc) is not SourceError:
            raise
        raise SourceError(
            f"{str(exc).rstrip('.')}. The round waits and nothing is lost: run again when that is mended; opmon rounds "
            f"abandon gives it up."
        ) from exc
    except OpmonError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _scored(work: Toolbox, round_: Round, slices: Sequence[Slice], folder: Path) -> list[Part]:
    """The parts of the round, from the executor."""
    jobs, done = jobs_of(work, round_, slices, folder), 0
    parts: list[Part] = []

    def hear(rows: int) -> None:
        nonlocal done
        done += rows
        work.progress(f"scoring round {round_.number}", min(done, round_.received), round_.received)

    try:
        with heard(hear):
            for summaries in work.executor.run(score, jobs):
                parts += summaries
                hear(max(0, sum(part.stop - part.start for part in parts) - done))
    except OutOfMemory:
        work.drop(round_)
        raise
    work.hold(round_)
    return parts


def _assembled(work: Toolbox, round_: Round, slices: Sequence[Slice], parts: Sequence[Part], path: Path) -> Assembled:
    found = assemble(work, round_, slices, parts, path)
    if found.losses:
        log.warning(
            "round %d of %s: %d inputs of %d cannot be scored: %s",
            round_.number,
            round_.monitor,
            found.losses.total(),
            round_.received,
            told(found.losses),
        )
    return found


def _compared(work: Toolbox, round_: Round, slices: Sequence[Slice]) -> Agreement | None:
    """A converted model is held against its original on the round's first inputs."""
    if not may_be_asked(work.settings, work.model(round_)):
        return None
    scorer: Scorer = work.scorer(round_)
    first = next(iter(work.source.read(slices)), None)
    rows = None if first is None else first.rows
    return require_agreement(work.settings, work.registry, work.model(round_), work.folder, scorer, rows)
