"""What a database of production says when it cannot be read, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import exc as sql

from opmon.durations import show_duration
from opmon.errors import DatabaseUnavailable, OpmonError, SourceError
from opmon.outgoing.libpq import refused
from opmon.outgoing.on_the_way import on_the_way
from opmon.redaction import redacted

_SLOW = (
    "a statement took longer than {timeout} (timeout). Is there an index on the cursor's columns, in their order? "
    "Otherwise raise timeout. Nothing is lost."
)
_POSTGRES: Mapping[str, str] = {
    "57014": _SLOW,
    "55P03": "somebody holds a lock on it, as ALTER TABLE does. Nothing is lost: it is read the next time.",
    "42501": "the user may not read it. Grant SELECT on it, and USAGE on its schema.",
    "42P01": "it is not there any more, or the query names a table that is not there.",
    "42703": "a column is not there any more, or the query names one that is not there: {said}",
    "25006": "the query writes; it may only read.",
    "22008": "a time in it cannot be read (infinity, or beyond the year 9999): {said}",
}
"""By SQLSTATE."""
_PASSING = ("57014", "55P03")


def trouble(where: str, what: str, exc: sql.SQLAlchemyError, timeout: timedelta) -> OpmonError:
    """The error for the one that the database ``where`` gave while ``what`` was read."""
    cause = exc.orig if isinstance(exc, sql.DBAPIError) else exc
    code = str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")
    said = _said(cause)
    words = _POSTGRES.get(code)
    if "interrupted" in said:  # by the clock that SQLite asks
        words = _SLOW
    if words is not None:
        message = f"{what} of {where}: {words.format(said=said, timeout=show_duration(timeout))}"
        return DatabaseUnavailable(message) if words is _SLOW or code in _PASSING else SourceError(message)
    if "unable to open database file" in said:
        return SourceError(f"{where} cannot be opened: is the file there, and may the user that runs opmon read it?")
    why = None if code or isinstance(cause, sqlite3.Error) else refused(said, "'database' of the source")
    if why is not None:
        return DatabaseUnavailable(f"{where}: {why}. Nothing is lost.")
    if _may_pass(exc, cause, code):
        reached = on_the_way(said, "sslrootcert of its address")
        return DatabaseUnavailable(
            f"{where} did not answer while {what} was read: {reached or said}. Nothing is lost; check that it runs and "
            f"that 'database' of the source names it."
        )
    return SourceError(f"{what} of {where} cannot be read: {said}")


def _may_pass(exc: sql.SQLAlchemyError, cause: BaseException | None, code: str) -> bool:
    """Whether it is the way to the database that failed, and not what was asked of it."""
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", None) or ""  # there is none on what Python's own module raises
        return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR"))
    if isinstance(exc, sql.DBAPIError) and exc.connection_invalidated:
        return True
    return isinstance(exc, sql.OperationalError | sql.InterfaceError) and (not code or code[:2] in ("08", "57", "53"))


def _said(cause: BaseException | None) -> str:
    """The first line of what the driver said."""
    lines = redacted(str(cause)).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
