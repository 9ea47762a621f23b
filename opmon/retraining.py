"""What a retraining job starts from: the failures that labelling exposed, out of the registry, as one DataFrame."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from opmon.durations import duration
from opmon.errors import InputError, NotFoundError

if TYPE_CHECKING:
    import pandas as pd

    from opmon.abc import Registry, TaggedRun

ENDED_TAG, ROUND_TAG = "opmon.ended_at", "opmon.round"
"""The tags of a round's run: when its last input came, and its number."""
FAILURES = "failures/failures.parquet"
OWN = ("round", "time", "monitor", "model_version", "run_id")
"""The columns that say where a failure is from."""
_MODEL = re.compile(r"models:/")


def load_failures(
    what: str,
    *,
    since: str | date | datetime | None = None,
    rounds: int | Collection[int] | None = None,
    tracking_uri: str | None = None,
    registry: Registry | None = None,
) -> pd.DataFrame:
    """The inputs on which a model was found to be wrong in production, with their truth: one row for each.

    ``what`` is a model version (``models:/digits@champion``, ``models:/digits/3``) or the name of a monitor. ``since``
    takes rounds whose last input came at that moment or later: a date, or how long ago (``30d``). ``rounds`` takes the
    last so many rounds of each monitor, or those of these numbers. MLflow is where ``tracking_uri`` says, or where
    MLflow's own settings do.

    The inputs have the columns that production logged, and beside them ``input_id``, ``prediction``, ``truth``,
    ``confidence`` and:

    * ``weight``: for how many inputs of its round a row stands, 1 / its expected number of draws. Failures that were
      sought out are thereby not counted for more than they are; NaN where the design does not tell.
    * ``round``, ``time`` (when the round's last input came), ``monitor``, ``model_version``, ``run_id``.

    It has no rows where nothing was found wrong, and is an error where no round was told at all, or none of a number
    that is asked for.
    """
    if registry is None:
        from opmon.registry import MlflowRegistry

        registry = MlflowRegistry(tracking_uri)
    runs = _of_these(_runs(registry, what), rounds)
    earliest = _moment(since)
    return _joined(registry, [run for run in runs if earliest is None or _ended(run) >= earliest])


def _runs(registry: Registry, what: str) -> list[TaggedRun]:
    """The runs of rounds, the oldest first."""
    kind = {"opmon.kind": "round"}
    if _MODEL.match(what):
        model = registry.resolve(what)
        found = registry.tagged("opmon/", {**kind, "opmon.model": model.name, "opmon.model_version": model.version})
    else:
        found = registry.tagged(f"opmon/{what}", kind)
    if not found:
        raise NotFoundError(
            f"there is no round of {what!r} in the registry at {registry.address}; give the name of a monitor, or a "
            f"model version that one watches, such as models:/digits@champion"
        )
    return sorted(found, key=lambda run: (_ended(run), int(run.tags.get(ROUND_TAG, 0))))


def _of_these(runs: Sequence[TaggedRun], rounds: int | Collection[int] | None) -> list[TaggedRun]:
    if rounds is None:
        return list(runs)
    if not isinstance(rounds, int):
        return _numbered(runs, set(rounds))
    if rounds < 1:
        raise InputError(f"rounds is how many of the last ones are taken, 1 or more, or their numbers; got {rounds}")
    monitors = {run.tags.get("opmon.monitor") for run in runs}
    own = {name: [run for run in runs if run.tags.get("opmon.monitor") == name][-rounds:] for name in monitors}
    return [run for run in runs if run in own[run.tags.get("opmon.monitor")]]


def _numbered(runs: Sequence[TaggedRun], numbers: Collection[int]) -> list[TaggedRun]:
    """Those of these numbers: one that is not there was not looked at, which is not to say that nothing was wrong."""
    found = [run for run in runs if int(run.tags.get(ROUND_TAG, 0)) in numbers]
    lacking = sorted(set(numbers) - {int(run.tags.get(ROUND_TAG, 0)) for run in found})
    if lacking:
        named = ", ".join(map(str, lacking[:5])) + (", …" if len(lacking) > 5 else "")
        raise NotFoundError(f"there is no run of round {named} in the registry; name those that MLflow has")
    return found


def _joined(registry: Registry, runs: Sequence[TaggedRun]) -> pd.DataFrame:
    import pandas as pd
    import pyarrow.parquet as pq

    tables = []
    with tempfile.TemporaryDirectory(prefix="opmon-failures-") as folder:
        for run in runs:
            try:
                path = registry.download(run.run_id, FAILURES, Path(folder) / run.run_id)
            except NotFoundError:  # its labels are not all in
                continue
            table = pq.read_table(path).to_pandas()
            own = (int(run.tags.get(ROUND_TAG, 0)), _ended(run), run.tags.get("opmon.monitor"))
            for name, value in zip(OWN, (*own, run.tags.get("opmon.model_version"), run.run_id), strict=True):
                if name in table.columns:
                    table = table.rename(columns={name: f"input_{name}"})
                table[name] = value
            tables.append(table)
    if not tables:
        return pd.DataFrame(columns=["input_id", "truth", "prediction", "confidence", "weight", *OWN])
    filled = [table for table in tables if len(table)] or tables[:1]
    joined: pd.DataFrame = pd.concat(filled, ignore_index=True)
    return joined


def _ended(run: TaggedRun) -> datetime:
    """When the round ended; of one that an older opmon told, when it was begun on."""
    said = run.tags.get(ENDED_TAG)
    return run.started_at if said is None else datetime.fromisoformat(said)


def _moment(since: str | date | datetime | None) -> datetime | None:
    """From when on; a moment without a zone is one of UTC."""
    if since is None:
        return None
    if isinstance(since, str):
        since = _read(since)
    if not isinstance(since, datetime):
        since = datetime.combine(since, time())
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - duration(text)
    except ValueError as exc:
        raise InputError(f"since is a date such as 2026-03-01, or how long ago, such as 30d; got {text!r}") from exc
