"""Sessions of PostgreSQL whose client stands still where none of the server's limits counts.

A session that waits for the rest of a message, of statements that are sent together (``executemany``), or of a
``COPY`` is at work as PostgreSQL sees it, and it can be ended neither for standing still nor for taking long. A process
that is stopped just there, or whose machine is gone, would keep what it has locked until it goes on. So who waits for
a lock in vain looks for such sessions, and ends those that have stood still for longer than the limit that would
otherwise hold. Their transactions are undone, as those of any process that dies.
"""

from __future__ import annotations

import logging
import threading
import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from opmon.store.schema import Row, metadata

log = logging.getLogger(__name__)

APART_SECONDS = 2.0
"""Between the two looks at a session: one that got on meanwhile does not stand still."""
_COPIES = 14
"""The first version of PostgreSQL that tells how far a COPY has got."""

_STALLED = """
    SELECT a.pid, a.state_change, {copied} AS copied, clock_timestamp() - a.state_change AS since
    FROM pg_stat_activity a {copies}
    WHERE a.datname = current_database() AND a.usename = current_user AND a.state = 'active'
    AND clock_timestamp() - a.state_change > nullif(current_setting(
        CASE a.wait_event WHEN 'ClientRead' THEN 'idle_in_transaction_session_timeout'
                          WHEN 'ClientWrite' THEN 'statement_timeout' END)::interval, interval '0')
    AND EXISTS (
        SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE l.pid = a.pid AND l.granted AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
        AND c.relname = ANY(:tables) AND pg_table_is_visible(c.oid)
    )
"""
"""Sessions that hold rows of our tables and have waited for their client for too long."""

_looking = threading.Lock()


def end_stalled(engine: Engine) -> int:
    """End the sessions that stand still; says how many there were."""
    if not _looking.acquire(blocking=False):
        return 0  # another thread is at it
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:  # each look sees anew
            before = _look(connection)
            if not before:
                return 0
            time.sleep(APART_SECONDS)
            return sum(_end(connection, row) for row in _look(connection) if _mark(row) in map(_mark, before))
    except SQLAlchemyError as exc:
        log.debug("sessions that stand still could not be looked for: %s", exc)
        return 0
    finally:
        _looking.release()


def _look(connection: Connection) -> list[Row]:
    tells = (connection.dialect.server_version_info or (0,)) >= (_COPIES,)
    query = _STALLED.format(
        copied="p.bytes_processed" if tells else "NULL",
        copies="LEFT JOIN pg_stat_progress_copy p ON p.pid = a.pid" if tells else "",
    )
    if not tells:
        query += " AND a.query NOT ILIKE 'copy %'"
    return list(connection.execute(sa.text(query), {"tables": sorted(metadata.tables)}))


def _mark(row: Row) -> tuple[object, ...]:
    return row.pid, row.state_change, row.copied


def _end(connection: Connection, row: Row) -> bool:
    ended = bool(connection.scalar(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": row.pid}))
    if ended:
        log.warning(
            "a session of PostgreSQL (its process %d) held rows and had stood still for %.0f s, because its client is "
            "stopped or gone: it was ended, and others go on",
            *(row.pid, row.since.total_seconds()),
        )
    return ended
