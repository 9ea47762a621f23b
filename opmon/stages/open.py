"""Open a round when enough has come in, or has waited long enough. This moves the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC

from opmon.errors import NotFoundError
from opmon.stages.identities import answered_by
from opmon.stages.toolbox import Toolbox, plan_of
from opmon.store import rounds
from opmon.types import ModelVersion, Slice


def open_round(work: Toolbox) -> bool:
    """Open the next round, or one for each model version that answered; false where there is nothing to open yet."""
    with work.store.read() as connection:
        positions = rounds.positions(connection, work.name)
    slices = work.source.pending(positions, work.settings.round.max_inputs)
    if not slices:
        _forget_wait(work)
        return False
    if not _is_ripe(work, slices):
        return False
    model = work.registry.resolve(work.settings.model)
    versions = _versions(work, slices, model)
    _require_layer(work, model, versions)
    with work.write() as connection:
        rounds.end_wait(connection, work.name)
        for version, received in versions.items():
            rounds.add(
                connection,
                work.name,
                slices,
                received=received,
                only_version=version,
                model_name=model.name,
                model_version=version or model.version,
                plan=plan_of(work.settings) | {"current_version": model.version},
                opened_at=work.clock(),
            )
    return True


def _require_layer(work: Toolbox, model: ModelVersion, versions: Iterable[str | None]) -> None:
    """A sampler that looks at a hidden layer needs a model that has one: else no round is opened and no input lost."""
    if work.settings.sampler.plugin.activation_levels is None:
        return
    for version in versions:
        try:
            found = model if version is None else work.registry.resolve(f"models:/{model.name}/{version}")
        except NotFoundError:
            continue  # its round waits until the registry knows it
        work.scorer_of(found, traced=True)


def _forget_wait(work: Toolbox) -> None:
    """What waited is gone from the log: what comes next has not waited as long."""
    with work.store.read() as connection:
        waits = rounds.is_waiting(connection, work.name)
    if waits:
        with work.write() as connection:
            rounds.end_wait(connection, work.name)


def _is_ripe(work: Toolbox, slices: Sequence[Slice]) -> bool:
    limits = work.settings.round
    if sum(piece.rows for piece in slices) >= limits.min_inputs:
        return True
    oldest = min(piece.arrived_at for piece in slices)
    with work.write() as connection:
        since = rounds.waiting_since(connection, work.name, oldest)
    return work.clock().astimezone(UTC) - since >= limits.max_age


def _versions(work: Toolbox, slices: Sequence[Slice], model: ModelVersion) -> dict[str | None, int]:
    """How many rows each model version answered; one entry ``None`` where the log does not name versions."""
    column = work.settings.columns.model_version
    if column is None:
        return {None: sum(piece.rows for piece in slices)}
    counts: Counter[str | None] = Counter()
    for batch in work.source.read(slices, [column]):
        for entry in batch.rows.column(column).value_counts().to_pylist():
            counts[answered_by(entry["values"], model.version)] += entry["counts"]
    return dict(sorted(counts.items(), key=lambda item: str(item[0])))
