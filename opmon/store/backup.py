"""A copy of the whole database in one file: a SQLite database, whichever kind it is a copy of.

So a copy of PostgreSQL can be restored to SQLite and the other way, and opened with any tool that knows SQLite. It is
of one moment: SQLite copies itself while others write, and PostgreSQL is read in one transaction that sees one moment.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from opmon import disk
from opmon.errors import DatabaseUnavailable, InputError
from opmon.locks import try_lock
from opmon.private import FILE
from opmon.store._copying import copy, tables_of
from opmon.store._trouble import trouble_with_file
from opmon.store.engine import Store
from opmon.store.migrate import migrate, revision_of

_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that holds a whole database."""

    path: Path
    schema: str
    rows: int
    bytes: int


def backup(store: Store, path: Path) -> Backup:
    """Copy the database to a new file, which is whole or not there, and which only this user may read."""
    _require_new(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path) as partial:
            _require_new(path)  # another process may have just written it
            schema = _copied(store, partial, path)
            with _told_of(path):
                rows = _settled(partial)
            partial.rename(path)
    except OSError as exc:
        full = disk.trouble(exc)
        raise (full or InputError(f"{path} cannot be written: {exc.strerror or exc}")) from exc
    return Backup(path, schema, rows, path.stat().st_size)


def _require_new(path: Path) -> None:
    if path.exists():
        raise InputError(f"{path} is there already; name a new file, for example with the date in it")


@contextmanager
def _alone(path: Path) -> Iterator[Path]:
    """The file in which the copy is made, of this process alone; what one that was killed left there is removed."""
    partial = path.with_name(f".{path.name}.partial")
    held = os.open(partial, os.O_CREAT | os.O_RDWR, FILE)
    try:
        if not try_lock(held) or not _leads_to(partial, held):
            raise InputError(f"another process is writing {path}; wait for it, or name another file")
        os.ftruncate(held, 0)
        try:
            yield partial
        finally:
            with suppress(OSError):
                if _leads_to(partial, held):
                    partial.unlink()
    finally:
        os.close(held)


def _leads_to(path: Path, held: int) -> bool:
    """Whether the path leads to the file that is held: another process may have given that its name, or removed it."""
    try:
        return os.path.samestat(os.fstat(held), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Tell in words what keeps the file of the copy from being written: it is none of the database's."""
    try:
        yield
    except (sqlite3.Error, SQLAlchemyError) as exc:
        error = trouble_with_file(path, exc)
        if error is None:
            raise
        raise error from exc


def opened(path: Path) -> Store:
    """The database in a file, for reading only; its schema is one that this opmon knows."""
    if not path.is_file():
        raise InputError(f"there is no backup {path}; opmon db backup FILE writes one")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InputError(f"{path} is no backup: name a file that opmon db backup wrote")
    store = Store(sa.create_engine(f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true"))
    try:
        with store.read() as connection:
            problems = connection.exec_driver_sql("PRAGMA integrity_check(3)").scalars().all()
            known = revision_of(store, connection) if problems == ["ok"] else None
    except DatabaseUnavailable as exc:
        raise InputError(f"{path} cannot be restored: {str(exc).replace(store.where, str(path))}") from exc
    if problems != ["ok"]:
        raise InputError(f"{path} is damaged, and nothing was restored: {'; '.join(map(str, problems))}")
    if known is None:
        raise InputError(f"{path} holds no tables of opmon's; name a file that opmon db backup wrote")
    return store


def _copied(store: Store, path: Path, name: Path) -> str:
    """Copy everything into an empty SQLite file, which will have this name; gives the schema."""
    with store.read(unhurried=True) as connection:
        schema = revision_of(store, connection)
        if schema is None:
            raise InputError(f"the database {store.where} holds no tables of opmon's: there is nothing to back up")
        if store.is_sqlite:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            with _told_of(name), closing(sqlite3.connect(path)) as file:
                driver.backup(file)
            return schema
        engine = sa.create_engine(f"sqlite:///{path}")
        try:
            with _told_of(name), engine.begin() as file:
                migrate(file, schema)
                copy(connection, file)
        finally:
            engine.dispose()
        return schema


def _settled(path: Path) -> int:
    """Make it one whole file on the disk, none beside it; gives how many rows it holds."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
        file.execute("PRAGMA synchronous=FULL")
        file.execute("VACUUM")
        problems = [row[0] for row in file.execute("PRAGMA integrity_check(3)")]
    if problems != ["ok"]:
        raise InputError(f"the copy is damaged, and nothing was kept: {'; '.join(problems)}; run opmon db check")
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        rows = sum(
            connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in tables_of(connection)
        )
    engine.dispose()
    return rows
