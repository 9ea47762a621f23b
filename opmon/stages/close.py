"""Closing a round that has no estimate: nothing to draw from, or no answer in time. MLflow is told what there is."""

from __future__ import annotations

import shutil
from datetime import timedelta

from opmon.reports.timeline import RoundFacts, timeline_metrics
from opmon.stages.judge import WITHOUT_ESTIMATE, judge_counts, write_conclusions
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds
from opmon.store.rounds import Round


def close_without_estimate(work: Toolbox, round_: Round, problem: str, *, asked: int = 0) -> None:
    """A moment before the round's end, so that an estimate from late labels is the newer value."""
    if round_.run_id is not None and round_.timeline_run_id is not None:
        counts = RoundFacts(
            round_.received, unscorable=round_.unscorable or 0, duplicates=round_.duplicates or 0, asked=asked
        )
        at = (round_.ends_at or round_.opened_at) - timedelta(milliseconds=1)
        metrics = timeline_metrics(None, counts)
        work.registry.log_metrics(round_.timeline_run_id, metrics, round_.number, at)
        work.registry.log_metrics(round_.run_id, metrics, round_.number, at)
        work.registry.finish_run(round_.run_id)
    found = judge_counts(work, round_, asked)
    with work.write() as connection:
        rounds.update(connection, round_.id, state="closed", closed_at=work.clock(), problem=problem)
        write_conclusions(work, connection, round_, WITHOUT_ESTIMATE, found)
    shutil.rmtree(work.round_folder(round_), ignore_errors=True)
