"""The body of an event: what actions are told."""

from __future__ import annotations

from collections.abc import Sequence

from opmon.kept_quantities import as_kept
from opmon.stages.toolbox import Toolbox
from opmon.store import outbox
from opmon.store.rounds import Round
from opmon.types import Estimate, Json, Verdict

_EVIDENCE = ("evidence", "needed", "bound", "distance", "rounds_judged", "baseline", "slices_alarmed", "difference")
"""What of a verdict's details whoever acts on it wants to know."""


def event_of(
    work: Toolbox,
    round_: Round,
    verdict: Verdict,
    estimate: Estimate | None,
    kind: str,
    *,
    state: str,
    alarms: Sequence[str] = (),
) -> dict[str, Json]:
    """The document of an event; ``alarms`` are the other rules whose alarms stand."""
    run = round_.run_id or ""
    return {
        "id": outbox.event_id(work.name, verdict.rule, round_.model_version, kind, round_.key),
        "type": kind,
        "state": state,
        "alarms": list(alarms),
        "monitor": work.name,
        "rule": verdict.rule,
        "round": round_.number,
        "at": work.clock().isoformat(),
        "message": verdict.message,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "evidence": {key: verdict.details[key] for key in _EVIDENCE if key in verdict.details},
        "model": {"name": round_.model_name, "version": round_.model_version, "uri": round_.model_uri},
        "estimate": None
        if estimate is None
        else {
            **as_kept(estimate.quantity),
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "level": estimate.level,
            "n": estimate.n,
            "frame_size": estimate.frame_size,
            "method": estimate.method,
            "response": estimate.response,
        },
        "run_uri": f"runs:/{run}",
        "failures_uri": f"runs:/{run}/failures/failures.parquet",
    }
