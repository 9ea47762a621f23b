"""Closing a round that has no estimate: nothing to draw from, no answer in time, or none that tells its main measure.

MLflow is told what there is, the further measures too."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from opmon.queries.plain import as_json
from opmon.stages.judge import WITHOUT_ESTIMATE, judge_counts, write_conclusions
from opmon.stages.timeline import tell_without_estimate
from opmon.stages.timelines import end_if_over
from opmon.stages.toolbox import Toolbox
from opmon.store import rounds
from opmon.store.measured import Measured
from opmon.store.rounds import Round
from opmon.store.states import RoundState

MOST_TOLD = 5
"""So many further measures are told in words; all of them are in MLflow."""


def close_without_estimate(
    work: Toolbox, round_: Round, problem: str, *, asked: int = 0, returned: int = 0, further: Sequence[Measured] = ()
) -> None:
    """Close it, with the reason; a late label may still bring an estimate. ``further`` are measures that are known."""
    if round_.run_id is not None and round_.timeline_run_id is not None:
        tell_without_estimate(work, round_, asked, returned, further)
        if further:
            path = work.round_folder(round_) / "measures.json"
            path.write_text(f"{as_json(further)}\n", encoding="utf-8")
            work.registry.log_artifact(round_.run_id, path)
        work.registry.finish_run(round_.run_id)
    found = judge_counts(work, round_, asked)
    with work.write() as connection:
        rounds.update(connection, round_.id, state=RoundState.CLOSED, closed_at=work.clock(), problem=problem)
        write_conclusions(work, connection, round_, WITHOUT_ESTIMATE, found)
    if round_.timeline_run_id is not None:
        end_if_over(work, round_)
    shutil.rmtree(work.round_folder(round_), ignore_errors=True)


def in_words(further: Sequence[Measured]) -> str:
    """The further measures that are known, in a line; empty where none is."""
    known = [each.estimate for each in further if each.estimate is not None]
    told = [
        f"{each.quantity.name} {each.quantity.interval(each.value, each.low, each.high)}" for each in known[:MOST_TOLD]
    ]
    if len(known) > MOST_TOLD:
        told.append(f"{len(known) - MOST_TOLD} more in MLflow")
    return ", ".join(told)
