"""``opmon serve``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmon.cli.common import config_option, log_format_option, settings_of

if TYPE_CHECKING:
    from opmon.config import Settings
    from opmon.health.health import Role
    from opmon.logs.formats import Form
    from opmon.store.engine import Store

_SWITCH_SECONDS = 0.001
"""After so long a thread that computes in Python lets another in: with Python's 5 ms one that computes without end
makes every question to the database three times slower for all monitors."""
_ROLES = "web: pages, API and what model servers send; worker: the monitors; all: both."


@click.command()
@config_option()
@click.option(
    "--role",
    type=click.Choice(["all", "web", "worker"]),
    default="all",
    show_default=True,
    help=_ROLES,
)
@log_format_option()
def serve(path: Path | None, role: Role, form: Form) -> None:
    """Run every monitor on its schedule, with the pages, until SIGTERM or Ctrl-C.

    Several workers on one PostgreSQL share the monitors: each is worked on by one of them at a time, and by another
    when that one is gone. It also takes what model servers send, where a monitor reads that.
    """
    from opmon.logs.formats import set_up
    from opmon.service import stopping

    stopping.begin()
    set_up(form)
    run(settings_of(path), path, role)


def run(settings: Settings, path: Path | None, role: Role) -> None:
    """Be one process of a service until told to stop."""
    from opmon import disk
    from opmon.config import load
    from opmon.config.files import chosen_path
    from opmon.health.health import Health
    from opmon.health.server import apart
    from opmon.ingest.endpoint import Standby, streams_of
    from opmon.ingest.pruning import Pruning
    from opmon.service import tracing
    from opmon.service.calculators import Calculators
    from opmon.service.idle import Idle
    from opmon.service.memory import few_heaps
    from opmon.service.reloading import Reloading
    from opmon.service.scheduler import Service
    from opmon.store.engine import open_store
    from opmon.web.server import beside

    sys.setswitchinterval(_SWITCH_SECONDS)
    few_heaps()
    if role != "web":
        disk.require_writes(settings.state)
    store = open_store(settings.database.get_secret_value())
    health = Health(settings, store, role)
    reloading = Reloading(chosen_path(path), settings, lambda: load(path), [health.take], _noted(store))
    health.configuration = reloading
    working: Service | Idle
    finish: Callable[[], None] = lambda: None  # noqa: E731
    if role == "web":
        working = Idle(reloading.look)
    else:
        working = Service(settings, reload=reloading.look, role=role)
        health.standstill, health.registry = working.standstill, working.registry.check
        health.stuck = working.stuck
        reloading.takers.append(working.take)
        sender = tracing.exporter()
        if sender is not None:
            watcher, end = tracing.tracer(sender)
            working.attention.watchers, finish = (watcher,), end
    with ExitStack() as stack:
        stack.callback(finish)
        stack.enter_context(Calculators().at_work())
        stack.enter_context(apart(health))
        if role != "worker":
            pruning = Pruning(store, streams_of(settings), settings.ingest.keep.total_seconds())
            pages = stack.enter_context(beside(settings, store, health))
            if pages is not None:
                reloading.takers.append(pages.site.take)
            stack.enter_context(Standby(settings, pruning.prune))
        working.run()


def _noted(store: Store) -> Callable[[str], None]:
    """Keeps for the audit that the configuration was read again."""
    from opmon.store import audit

    def note(changed: str) -> None:
        with store.write() as connection:
            audit.note(connection, audit.of_command(datetime.now(UTC), audit.Act.RELOADED, changed))

    return note
