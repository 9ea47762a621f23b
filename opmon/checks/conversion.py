"""Whether a converted model answers as its original does."""

from __future__ import annotations

from pathlib import Path

from opmon.abc import Registry
from opmon.checks.finding import Finding
from opmon.checks.sample import Sample, spread
from opmon.checks.trial import STOPS
from opmon.config import MonitorSettings
from opmon.errors import OpmonError
from opmon.scoring.scorer import Scorer
from opmon.stages.originals import ROWS, agreement, may_be_asked, permission
from opmon.types import ModelVersion


def compared(
    monitor: MonitorSettings, registry: Registry, model: ModelVersion, scorer: Scorer, sample: Sample, folder: Path
) -> Finding:
    """Compare the answers of both if the original may be loaded; else a finding that they were not compared."""
    about = f"{monitor.name}: conversion"
    if not may_be_asked(monitor, model):
        have, key = ", ".join(model.flavors), permission(model)
        message = f"not compared with the original ({have}): that runs its code, and {key} allows it"
        return Finding(about, "ok", message)
    try:
        found = agreement(
            scorer, registry.original(model, folder / "models", monitor.may_run_code), spread(sample.rows, ROWS)
        )
    except OpmonError as exc:
        return Finding(about, "warning", f"not compared with the original: {exc}")
    if found.enough:
        return Finding(about, "ok" if found.whole else "warning", str(found))
    if monitor.columns.prediction is None:
        return Finding(about, "problem", f"{found.refusal} {STOPS}", needs_change=True)
    return Finding(about, "warning", found.refusal)
