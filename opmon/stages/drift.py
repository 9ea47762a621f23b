"""The advisory drift report of a round: how its inputs differ from the training data that "opmon reference" saw.

Without that, from those of the first round of the same model version.

Drift is not loss of accuracy: a report says where to look, and never stops a round.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from opmon.config import MonitorSettings
from opmon.errors import NotFoundError, OpmonError
from opmon.jobs.parts import Part, read_sample
from opmon.reports.drift import ColumnDrift, DriftSummary
from opmon.stages.drift_slices import drift_by_slice, predicted_shares
from opmon.stages.frames import VARIABLE, read_frame, read_inputs
from opmon.stages.models import SAMPLE_TAG
from opmon.stages.toolbox import Toolbox
from opmon.store import versions
from opmon.store.rounds import Round
from opmon.tables import joined
from opmon.types import Document, Frame, Json
from opmon.types.slicing import Slicing

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

NAME = "drift_sample.parquet"
OWN = "model "
"""How columns begin that opmon sets beside those of the log."""


def sampled_rows(settings: MonitorSettings, round_: Round) -> NDArray[np.int64]:
    """Which rows of a round are sampled, in order: drawn before they are read, since their number is known."""
    size = min(settings.drift.max_rows, round_.received) if settings.drift.enabled else 0
    rng = np.random.default_rng([settings.seed, round_.number])
    return np.sort(rng.choice(round_.received, size=size, replace=False, shuffle=False)).astype(np.int64)


def not_sampled(settings: MonitorSettings) -> frozenset[str]:
    """The columns of a log that are no inputs of a model."""
    return frozenset(name for _, name in (*settings.columns.named, *settings.truth_columns))


def advise_drift(
    work: Toolbox, round_: Round, run_id: str, parts: Sequence[Part], path: Path, slicing: Slicing | None
) -> dict[str, Json] | None:
    """Report the drift into the round's run; what the round keeps of it, or None where there is no drift report."""
    if not work.settings.drift.enabled or not (frame := read_frame(path)).size:
        return None
    classes = predicted_shares(round_, path)
    found = _reported(work, round_, run_id, parts, path, frame, slicing)
    return {"classes": classes, **found} if found or classes else None


def _reported(
    work: Toolbox,
    round_: Round,
    run_id: str,
    parts: Sequence[Part],
    path: Path,
    frame: Frame,
    slicing: Slicing | None,
) -> dict[str, Json]:
    """What the report tells; nothing where there is nothing to compare the round with."""
    settings = work.settings.drift
    folder = work.round_folder(round_)
    current = _columns(work, round_, parts, path, frame)
    pq.write_table(current, folder / NAME)
    work.registry.log_artifact(run_id, folder / NAME)
    try:
        reference = _reference(work, round_)
        if reference is None:
            return {}
        from opmon.reports.drift import drift_report

        summary = drift_report(
            reference,
            current.to_pandas(),
            folder / "drift.html" if settings.page else None,
            max_columns=settings.max_columns,
            max_rows=settings.max_rows,
            seed=work.settings.seed,
            own=[name for name in current.column_names if name.startswith(OWN)],
        )
    except OpmonError as exc:
        log.warning("round %d of %s has no drift report: %s", round_.number, work.name, exc)
        return {}
    if summary.path is not None:  # some megabytes: written where there is something to see
        work.registry.log_artifact(run_id, summary.path, "drift")
    return {
        "share": summary.share,
        "answers": summary.answers_share,
        "drifted": list(summary.drifted),
        "compared": [asdict(column) for column in summary.columns],
        "skipped": dict(summary.skipped),
        "problem": summary.problem,
        "slices": _by_slice(work, slicing, reference, current),
    }


def _by_slice(work: Toolbox, slicing: Slicing | None, reference: pd.DataFrame, current: pa.Table) -> dict[str, Json]:
    logged = current.drop_columns([name for name in current.column_names if name.startswith(OWN)])
    try:
        return drift_by_slice(slicing, reference, logged, work.settings.drift.max_columns, work.settings.seed)
    except (OpmonError, ValueError, TypeError, pa.ArrowException):  # columns of two kinds at once, and the like
        log.warning("the drift of %s is not told by slice", work.name, exc_info=True)
        return {}


def summary_of(kept: Document | None) -> DriftSummary | None:
    """What a round keeps of its drift report, as a report again; None where it has none."""
    if kept is None or "compared" not in kept:
        return None
    columns = tuple(ColumnDrift(**column) for column in kept["compared"])
    return DriftSummary(columns, skipped=kept["skipped"], problem=kept["problem"])


def _columns(work: Toolbox, round_: Round, parts: Sequence[Part], path: Path, frame: Frame) -> pa.Table:
    """The sampled columns, and beside them the model's own answers and variables."""
    rng = np.random.default_rng([work.settings.seed, round_.number, 1])
    size = min(frame.size, work.settings.drift.max_rows)
    chosen = np.sort(rng.choice(frame.size, size=size, replace=False, shuffle=False))
    answered = read_inputs(path, chosen, ["prediction", *(VARIABLE + name for name in frame.variables)])
    samples = [read_sample(part.sample) for part in parts if part.sample.exists()]
    raw = joined(samples) if samples else pa.table({})
    size = min(size, raw.num_rows) if raw.num_columns else size
    logged, said = (_some(table, size, rng) for table in (raw, answered))
    columns = {name: logged[name] for name in raw.column_names}
    columns[f"{OWN}prediction"] = said["prediction"]
    columns |= {f"{OWN}{name}": said[VARIABLE + name] for name in frame.variables}
    return pa.table(columns)


def _some(table: pa.Table, size: int, rng: np.random.Generator) -> pa.Table:
    """So many rows of all, drawn by chance and in order: the first ones would be those of the round's first hours."""
    if table.num_rows <= size or not table.num_columns:
        return table
    return table.take(np.sort(rng.choice(table.num_rows, size=size, replace=False)))


def _reference(work: Toolbox, round_: Round) -> pd.DataFrame | None:
    """The file that the configuration names, or the sample of the training data, or that of the first round."""
    if work.settings.drift.reference is not None:
        return _read(Path(work.settings.drift.reference))
    training = work.registry.published(work.model(round_), SAMPLE_TAG, work.folder / "references")
    if training is not None:
        return _read(training)
    first = _first_run(work, round_)
    if first is None:
        return None
    kept = work.folder / "references" / first
    try:
        return _read(kept / NAME if (kept / NAME).is_file() else work.registry.download(first, NAME, kept))
    except NotFoundError:
        return None


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError, pa.ArrowInvalid) as exc:
        raise NotFoundError(f"the drift reference {path} cannot be read: {exc}") from exc


def _first_run(work: Toolbox, round_: Round) -> str | None:
    with work.store.read() as connection:
        return versions.first_scored_run(connection, round_)
