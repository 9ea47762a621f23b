"""Bring the database's tables up to date, once, however many processes start together."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.errors import DatabaseUnavailable
from opmon.store.engine import Store
from opmon.store.schema import metadata

REVISIONS = tuple(f"{number:04}" for number in range(1, 32))
"""The files in ``migrations/versions``, oldest first; a test keeps the two in step."""
HEAD = REVISIONS[-1]

_LOCK = 0x0970_0A11  # any number that no other program uses for its advisory lock


def upgrade(store: Store) -> None:
    """Run the missing migrations in one transaction; a database at a schema that is not opmon's is an error."""
    if is_current(store):
        return
    with store.write(unhurried=True) as connection:  # large tables take their time, and whoever starts meanwhile waits
        if not store.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        if revision_of(store, connection) != HEAD:
            migrate(connection)


def state(store: Store) -> str:
    """How the tables stand, in words; they are not touched."""
    found = schema_of(store)
    if found == HEAD:
        return "its tables are up to date"
    return (
        "the first run makes its tables" if found is None else f"the next run brings its tables from {found} to {HEAD}"
    )


def schema_of(store: Store) -> str | None:
    """At which of opmon's schemas the tables are; None where there are none yet."""
    with store.read() as connection:
        return revision_of(store, connection)


def is_current(store: Store) -> bool:
    """Whether the tables are there and up to date."""
    return schema_of(store) == HEAD


def revision_of(store: Store, connection: Connection) -> str | None:
    """At which of opmon's schemas the tables are; None where there are none yet."""
    names = set(sa.inspect(connection).get_table_names())
    marked = "alembic_version" in names
    marks = connection.scalars(sa.text("SELECT version_num FROM alembic_version")).all() if marked else []
    ours = sorted(names & set(metadata.tables))
    if not marks:
        if not ours:
            return None
        raise DatabaseUnavailable(
            f"the database {store.where} has tables of opmon's ({', '.join(ours[:3])}, …), but alembic_version, the "
            f"table that says at which schema they are, is missing or empty. Restore the database from a backup, or "
            f"name another in 'database'."
        )
    if len(marks) == 1 and marks[0] in REVISIONS:
        return str(marks[0])
    raise DatabaseUnavailable(_unknown(store, marks[0], ours))


def _unknown(store: Store, mark: str, ours: list[str]) -> str:
    """What is said of a schema that this opmon has no migration from."""
    if ours and mark.isdigit() and mark > HEAD:
        return f"{store.where} was made by a newer opmon (schema {mark}, this one knows {HEAD}): upgrade opmon"
    if ours:
        return (
            f"the database {store.where} is at schema {mark}, which this opmon does not know (it knows "
            f"{', '.join(REVISIONS)}): it was made by a version between releases. Go back to that version, or restore "
            f"a backup."
        )
    return (
        f"the database {store.where} belongs to another program (schema {mark}; MLflow keeps its tables so). "
        f"Give opmon a database of its own in 'database'."
    )


def migrate(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to a revision, in the transaction of the connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
