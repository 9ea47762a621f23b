"""Is everything there that a monitor needs, and if not, what is wrong in plain words? No table is changed by asking."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opmon.config import MonitorSettings, Settings
from opmon.errors import InputError, ModelError, NotFoundError, OpmonError, SourceError
from opmon.monitor import registry_of
from opmon.registry import Registry
from opmon.scoring.scored import Scored
from opmon.stages.models import open_scorer
from opmon.store import migrate
from opmon.store.engine import connect
from opmon.types import Batch, Frame, ModelVersion

SAMPLE_ROWS = 64


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    about: str
    level: Literal["ok", "warning", "problem"]
    message: str
    needs_change: bool = False
    """Whether somebody must change something; otherwise trying again may do."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_services(settings: Settings) -> Iterator[Finding]:
    """The database and MLflow."""
    yield _asked("database", lambda: _ask_database(settings))
    yield _asked("mlflow", lambda: registry_of(settings).check())


def check_monitor(settings: Settings, name: str) -> Iterator[Finding]:
    """The model, the device, the source, and whether the model takes what the source gives."""
    monitor, registry = settings.monitor(name), registry_of(settings)
    found: dict[str, Any] = {}

    def resolve() -> str:
        model: ModelVersion = registry.resolve(monitor.model)
        found["model"] = model
        return f"{monitor.model} is version {model.version} ({', '.join(model.flavors)})"

    yield _asked(f"{name}: model", resolve)
    yield _source(monitor, found)
    if "model" in found:
        with tempfile.TemporaryDirectory() as folder:
            yield _asked(f"{name}: scoring", lambda: _open_model(monitor, registry, found, Path(folder)))
            if "scorer" in found and found.get("batch") is not None:
                yield _try(monitor, found)


def _ask_database(settings: Settings) -> str:
    store = connect(settings.database.get_secret_value())
    return f"{store.where} answers; {migrate.state(store)}"


def _open_model(monitor: MonitorSettings, registry: Registry, found: dict[str, Any], folder: Path) -> str:
    traced = monitor.sampler.plugin.activation_levels is not None
    scorer = open_scorer(monitor, registry, found["model"], folder, traced)
    found["scorer"] = scorer
    told = scorer.describe()
    return ", ".join(f"{key} {_short(value)}" for key, value in told.items())


def _source(monitor: MonitorSettings, found: dict[str, Any]) -> Finding:
    about = f"{monitor.name}: source"
    try:
        slices = monitor.source.plugin.pending({}, SAMPLE_ROWS)
        if not slices:
            return Finding(about, "warning", "nothing to read yet: no file matches, or none is complete")
        found["batch"] = next(iter(monitor.source.plugin.read(slices)), None)
    except OpmonError as exc:
        return Finding(about, "problem", str(exc), needs_change=isinstance(exc, InputError | SourceError))
    names = found["batch"].rows.schema.names if found["batch"] is not None else []
    columns = monitor.columns.model_dump()
    missing = [f"{key}: {name}" for key, name in columns.items() if name is not None and name not in names]
    if missing:
        message = f"columns that are not there ({', '.join(missing)}); there are: {', '.join(names)}"
        return Finding(about, "problem", message, needs_change=True)
    return Finding(about, "ok", f"{slices[0].part} can be read: {len(names)} columns ({_short(names)})")


def _try(monitor: MonitorSettings, found: dict[str, Any]) -> Finding:
    about = f"{monitor.name}: trial"
    batch: Batch = found["batch"]
    rows = batch.rows.slice(0, SAMPLE_ROWS)
    try:
        scored = list(found["scorer"].score([Batch(0, 0, rows)]))
        _draw(monitor, scored)
    except OpmonError as exc:
        return Finding(about, "problem", str(exc), needs_change=True)
    rejected = dict(itertools.chain.from_iterable(part.rejected.items() for part in scored))
    if not rejected:
        return Finding(about, "ok", f"the model answered {rows.num_rows} inputs of the source")
    message = (
        f"{len(rejected)} of {rows.num_rows} inputs cannot be scored, for example: {next(iter(rejected.values()))}"
    )
    if len(rejected) == rows.num_rows:
        return Finding(about, "problem", message, needs_change=True)
    return Finding(about, "warning", message)


def _draw(monitor: MonitorSettings, scored: Sequence[Scored]) -> None:
    """Whether the sampler finds the variables it needs."""
    for part in scored:
        size = len(part.rows)
        if size > 1:
            frame = Frame(part.variables, predictions=part.predictions, activations=part.activations, size=size)
            monitor.sampler.plugin.draw(frame, size // 2, np.random.default_rng(0))


def _asked(about: str, question: Callable[[], str]) -> Finding:
    try:
        return Finding(about, "ok", question())
    except OpmonError as exc:
        needs_change = isinstance(exc, InputError | NotFoundError | ModelError | SourceError)
        return Finding(about, "problem", str(exc), needs_change=needs_change)


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:6])) + (f", … ({len(value)})" if len(value) > 6 else "")
    return str(value)
