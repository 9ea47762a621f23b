"""The datasets of a round, as MLflow lists them beside its run: all of its inputs, and what the model got wrong."""

from __future__ import annotations

from pathlib import Path

from opmon.abc import Dataset
from opmon.stages import frames
from opmon.stages.toolbox import Toolbox
from opmon.store.rounds import Round

FAILURES = "failures/failures.parquet"


def datasets_of(work: Toolbox, round_: Round, report: Path) -> list[Dataset]:
    """Those whose files are here; ``report`` is the folder of the round's report."""
    frame, failures = work.round_folder(round_) / frames.NAME, report / FAILURES
    named = [
        Dataset(f"{work.name}, round {round_.number}, inputs", "production", frame, frames.NAME),
        Dataset(f"{work.name}, round {round_.number}, failures", "failures", failures, FAILURES),
    ]
    return [each for each in named if each.path.is_file()]
