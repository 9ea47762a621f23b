"""Whether what opmon keeps can be right: its database, and the files that its open rounds need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opmon.abc import Registry
from opmon.checks.finding import Finding, trouble
from opmon.config import MonitorSettings, Settings
from opmon.config.registry import registry_of
from opmon.errors import OpmonError
from opmon.stages.captured import name_of
from opmon.stages.frames import NAME as FRAME
from opmon.stages.toolbox import folder_of
from opmon.store import examining, migrate, rounds, slices
from opmon.store.engine import Store, connect
from opmon.store.rounds import Round
from opmon.store.states import RoundState
from opmon.wording import counted

_SHOWN = 3


def check_kept(settings: Settings) -> Iterator[Finding]:
    """The schema, the rows, and the files of open rounds."""
    store = connect(settings.database.get_secret_value())
    try:
        schema = migrate.schema_of(store)
        yield Finding("schema", "ok", f"{store.where}: {migrate.state(store)}")
        if schema is None:
            return
        found = list(examining.problems(store))
        yield from (Finding("rows", "problem", said, needs_change=True) for said in found)
        if not found:
            count = sum(examining.rows_in(store).values())
            yield Finding("rows", "ok", f"{counted(count, 'row')}: all can be read, and what they name is there")
    except OpmonError as exc:
        yield trouble("database", exc)
        return
    if schema != migrate.HEAD:
        yield Finding("files", "warning", 'are looked for once the tables are up to date: "opmon db upgrade"')
        return
    registry = registry_of(settings)
    for name, monitor in settings.monitors.items():
        yield _of_monitor(store, registry, settings.state, name, monitor)


def _of_monitor(store: Store, registry: Registry, state: Path, name: str, monitor: MonitorSettings) -> Finding:
    """The files without which the monitor's open rounds cannot go on."""
    try:
        with store.read() as connection:
            unfinished = list(rounds.unfinished(connection, name))
            parts = sorted(slices.needed(connection, name))
        lacking = [path for round_ in unfinished for path in _lacking(registry, state, round_)]
        received = monitor.source.plugin.receives
        if received is not None:
            lacking += [str(received / part) for part in parts if not (received / part).is_file()]
    except OpmonError as exc:
        return trouble(f"files of {name}", exc)
    if not lacking:
        return Finding(f"files of {name}", "ok", f"{counted(len(unfinished), 'open round')}: all files are there")
    shown = ", ".join(lacking[:_SHOWN]) + (", …" if len(lacking) > _SHOWN else "")
    return Finding(
        f"files of {name}",
        "problem",
        f"{counted(len(lacking), 'file is', 'files are')} missing that open rounds need: {shown}. "
        f'Put back what was removed, or give the round up: "opmon rounds abandon"',
        needs_change=True,
    )


def _lacking(registry: Registry, state: Path, round_: Round) -> list[str]:
    """What neither the state folder nor the registry has of a round."""
    needed = [name_of(wave) for wave in range(round_.waves)]
    if round_.state == RoundState.SCORED:
        needed.append(FRAME)
    folder = folder_of(state, round_)
    gone = [name for name in needed if not (folder / name).is_file()]
    if not gone:
        return []
    kept = registry.files(round_.run_id) if round_.run_id is not None else {}
    return [f"round {round_.number}: {name}" for name in gone if name not in kept]
