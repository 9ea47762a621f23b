"""Putting a backup into a database, in one transaction: all of it is there afterwards, or what was there before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import InputError, LeaseHeld
from opmon.store import leases, workers
from opmon.store._copying import MARK, Copied, copy, tables_of
from opmon.store.backup import opened
from opmon.store.engine import Store
from opmon.store.migrate import migrate, revision_of
from opmon.store.schema import metadata
from opmon.wording import counted


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, and from which schema it was brought to today's."""

    schema: str
    copied: Copied


def restore(path: Path, store: Store, *, replace: bool = False) -> Restored:
    """Put a backup into a database; one that holds something is refused unless it is to be replaced."""
    file = opened(path)
    try:
        with file.read() as source, store.write(unhurried=True) as target:
            schema = str(revision_of(file, source))
            there = {table.name for table in tables_of(target)}
            before = leases.tokens(target) if "leases" in there else {}
            _require_room(store, target, path, replace)
            _drop_tables(target)
            migrate(target, schema)
            copied = copy(source, target)
            migrate(target)
            leases.begin_anew(target, before)
        return Restored(schema, copied)
    finally:
        file.close()


def _require_room(store: Store, target: Connection, path: Path, replace: bool) -> None:
    if revision_of(store, target) is None:
        return
    there = {table.name: target.scalar(sa.select(sa.func.count()).select_from(table)) for table in tables_of(target)}
    rows = sum(there.get(name, 0) or 0 for name in metadata.tables)
    if not rows:
        return
    if not replace:
        raise InputError(
            f"the database {store.where} holds {counted(there.get('rounds') or 0, 'round')} and "
            f"{counted(there.get('labels') or 0, 'label')} ({counted(rows, 'row')}), and was not touched. Name an "
            f"empty one in 'database', or have all of it replaced: opmon db restore {path} --replace"
        )
    at_work = leases.holders(target)
    if at_work:
        raise LeaseHeld(f"the database {store.where} was not touched, for opmon is at work on it: {'; '.join(at_work)}")

    running = workers.running(target, datetime.now(UTC)) if "workers" in there else []
    if running:
        raise LeaseHeld(
            f"the database {store.where} was not touched, for opmon serve runs on it: {'; '.join(running)}. Stop it, "
            f"or wait a minute where it was killed"
        )


def _drop_tables(target: Connection) -> None:
    """Take opmon's tables away, so that those of the backup's schema can be made."""
    ours = [table for table in tables_of(target) if table.name in metadata.tables]
    for table in reversed(ours):
        table.drop(target)
    sa.Table(MARK, sa.MetaData()).drop(target, checkfirst=True)
