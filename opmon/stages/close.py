"""Closing a round that has no estimate: nothing to draw from, or no answer in time. MLflow is told what there is."""

from __future__ import annotations

import shutil

from opmon.stages.judge import WITHOUT_ESTIMATE, judge_counts, write_conclusions
from opmon.stages.timeline import tell_without_estimate
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds
from opmon.store.rounds import Round
from opmon.store.states import RoundState


def close_without_estimate(work: Toolbox, round_: Round, problem: str, *, asked: int = 0) -> None:
    """Close it, with the reason; a late label may still bring an estimate."""
    if round_.run_id is not None and round_.timeline_run_id is not None:
        tell_without_estimate(work, round_, asked)
        work.registry.finish_run(round_.run_id)
    found = judge_counts(work, round_, asked)
    with work.write() as connection:
        rounds.update(connection, round_.id, state=RoundState.CLOSED, closed_at=work.clock(), problem=problem)
        write_conclusions(work, connection, round_, WITHOUT_ESTIMATE, found)
    shutil.rmtree(work.round_folder(round_), ignore_errors=True)
