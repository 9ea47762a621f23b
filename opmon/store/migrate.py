"""Bring the database's tables up to date, once, however many processes start together."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import DatabaseUnavailable
from opmon.store.engine import Store

HEAD = "0001"
"""The newest revision in ``migrations/versions``; a test keeps the two in step."""

_LOCK = 0x0970_0A11  # any number that no other program uses for its advisory lock


def upgrade(store: Store) -> None:
    """Run the missing migrations in one transaction; a database newer than this opmon is an error."""
    with store.read() as connection:
        if _revision(connection) == HEAD:
            return
    with store.write() as connection:
        if not store.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        found = _revision(connection)
        if found == HEAD:
            return
        _refuse_newer(store, found)
        _run_alembic(connection)


def state(store: Store) -> str:
    """How the tables stand, in words; they are not touched."""
    with store.read() as connection:
        found = _revision(connection)
    if found == HEAD:
        return "its tables are up to date"
    _refuse_newer(store, found)
    return (
        "the first run makes its tables" if found is None else f"the next run brings its tables from {found} to {HEAD}"
    )


def _refuse_newer(store: Store, found: str | None) -> None:
    if found is not None and found > HEAD:
        raise DatabaseUnavailable(
            f"{store.where} was made by a newer opmon (schema {found}, this one knows {HEAD}): upgrade opmon"
        )


def _revision(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found


def _run_alembic(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
