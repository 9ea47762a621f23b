"""What a database says when it cannot do as asked, in words: the one place that reads their codes of errors."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import exc as sql

from opmon.errors import DatabaseBusy, DatabaseUnavailable
from opmon.outgoing.libpq import refused
from opmon.outgoing.on_the_way import on_the_way
from opmon.redaction import redacted

_VARIABLE = "OPMON_DATABASE"
"""Where it is set, the address is written there: it wins over the key 'database' of opmon.yaml."""
_AGAIN = "Nothing is lost: what was not done is done the next time."
_ROOM = "the disk that holds it is full. Free some space. " + _AGAIN
_MISSING = (
    "tables of opmon's are missing. Was it emptied, replaced or half restored while opmon ran? Put it back; "
    "an empty database gets its tables when opmon starts."
)
_OTHER = (
    "its tables are not those of this opmon. Were they brought up to date by a newer one while this one ran? Start the "
    "new release in place of this process."
)

_SQLITE: Mapping[str, str] = {
    "SQLITE_FULL": _ROOM,
    "SQLITE_READONLY": "it cannot be written. Give opmon's user the right to write the file and its folder.",
    "SQLITE_CANTOPEN": "it cannot be opened. Is the folder there, and may the user that runs opmon read and write it?",
    "SQLITE_BUSY": (
        "another process does not let go of it. Look for one that is stopped or hangs "
        f"(fuser or lsof name it). {_AGAIN}"
    ),
    "SQLITE_LOCKED": f"another connection holds it. {_AGAIN}",
    "SQLITE_IOERR": f"its disk gives errors, or is full. Check the disk and its free space. {_AGAIN}",
    "SQLITE_CORRUPT": "it is damaged. Restore it from a backup, or keep what 'sqlite3 FILE .recover' still reads.",
    "SQLITE_NOTADB": "it is not a SQLite database. Move that file away or name another in 'database'.",
}
"""By the beginning of SQLite's name for it."""

_POSTGRES: Mapping[str, str] = {
    "53100": _ROOM,
    "55P03": (
        "another session has held a row or table that opmon needs for longer than lock_timeout; pg_stat_activity and "
        f"pg_blocking_pids tell whose it is. {_AGAIN}"
    ),
    "57014": f"a query took longer than statement_timeout. {_AGAIN}",
    "25P03": f"this process stood still inside a transaction for too long, so the server ended it. {_AGAIN}",
    "25P04": f"a transaction took longer than transaction_timeout. {_AGAIN}",
    "57P01": (
        "the server ended this session: it is being shut down, or this process stood still inside a transaction and "
        f"others waited for it. {_AGAIN}"
    ),
    "57P02": f"the server went down. {_AGAIN}",
    "57P03": f"the server is starting up or shutting down. {_AGAIN}",
    "40001": f"another transaction was quicker. {_AGAIN}",
    "40P01": f"two transactions waited for each other and the server ended one. {_AGAIN}",
    "42501": "its user may not do this. Grant it all rights on opmon's tables and the schema they are in.",
    "25006": (
        "it takes no writes now: it is a standby, or default_transaction_read_only is on. Name the primary in "
        f"'database', or let it take writes. {_AGAIN}"
    ),
    "42P01": _MISSING,
    "42703": _OTHER,
}
"""By SQLSTATE."""

_ON_THE_WAY: Mapping[str, str] = {
    r"too many clients already|remaining connection slots|too many connections for": (
        f"it has no connection left. A process of opmon takes ten at most: raise max_connections there, or run fewer. "
        f"{_AGAIN}"
    ),
    r"password authentication failed|no password supplied": (
        "it refused the user or the password. Write the right ones into 'database' and start opmon again. " + _AGAIN
    ),
}
"""By what PostgreSQL says to one who connects, where opmon can do something about it itself."""

_BUSY = (_SQLITE["SQLITE_BUSY"], _POSTGRES["55P03"])


def trouble(where: str, exc: sql.SQLAlchemyError, pool: int) -> DatabaseUnavailable | None:
    """The error to raise for the one that the database ``where`` gave; None where it is opmon's own fault."""
    told = _told(where, exc, pool)
    if told is None or not os.environ.get(_VARIABLE):
        return told
    return type(told)(str(told).replace("'database'", _VARIABLE))


def _told(where: str, exc: sql.SQLAlchemyError, pool: int) -> DatabaseUnavailable | None:
    words = _words(exc)
    if words is not None:
        kind = DatabaseBusy if words in _BUSY else DatabaseUnavailable
        return kind(f"the database {where}: {words}")
    if isinstance(exc, sql.TimeoutError):
        return DatabaseUnavailable(f"all {pool} connections to the database {where} are in use. {_AGAIN}")
    lost = isinstance(exc, sql.DBAPIError) and exc.connection_invalidated
    if not lost and not isinstance(exc, sql.OperationalError | sql.InterfaceError):
        return None
    said = _said(exc)
    reached = on_the_way(said, "sslrootcert of 'database'")
    if reached is not None and "certificate" in said:
        return DatabaseUnavailable(f"the database {where} cannot be reached: {reached}. {_AGAIN}")
    return DatabaseUnavailable(
        f"the database {where} did not answer: {reached or said}. Check that it runs and that 'database' names it."
    )


def trouble_with_file(path: Path, exc: sqlite3.Error | sql.SQLAlchemyError) -> DatabaseUnavailable | None:
    """The error for one that a SQLite file gave, which is written beside the database; None for one of another's."""
    cause = exc.orig if isinstance(exc, sql.DBAPIError) else exc
    if not isinstance(cause, sqlite3.Error):
        return None
    return DatabaseUnavailable(f"{path} cannot be written: {_sqlite_words(cause) or redacted(str(cause))}")


def _words(exc: sql.SQLAlchemyError) -> str | None:
    cause = exc.orig if isinstance(exc, sql.DBAPIError) else None
    if isinstance(cause, sqlite3.Error):
        return _sqlite_words(cause)
    code = None if cause is None else getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if code is not None:
        return _POSTGRES.get(str(code))
    own = next((words for said, words in _ON_THE_WAY.items() if re.search(said, str(cause))), None)
    why = None if own is not None or cause is None else refused(_said(exc), "'database'")
    return own if why is None else f"{why}. {_AGAIN}"


def _sqlite_words(cause: sqlite3.Error) -> str | None:
    if "no such table" in str(cause):
        return _MISSING
    if "no such column" in str(cause) or "has no column named" in str(cause):
        return _OTHER
    name = getattr(cause, "sqlite_errorname", None) or ""  # there is none on what Python's own module raises
    return next((words for begin, words in _SQLITE.items() if name.startswith(begin)), None)


def _said(exc: sql.SQLAlchemyError) -> str:
    """The first line of what the driver said."""
    cause = exc.orig if isinstance(exc, sql.DBAPIError) else exc
    lines = str(cause).strip().splitlines()
    return redacted(lines[0]) if lines else type(cause).__name__
