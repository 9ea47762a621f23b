"""Whether the database takes writes: one that is full, or is a standby, answers all the same."""

from __future__ import annotations

import uuid
from datetime import datetime

from opmon.errors import DatabaseBusy, DatabaseUnavailable
from opmon.store import workers
from opmon.store.engine import Store
from opmon.store.workers import Worker


def why_no_writes(store: Store, now: datetime) -> str | None:
    """Why the database takes no writes, in words without its address; None where it does, or another is at it.

    A row is written and removed again in one transaction, which nobody sees: what is only asked for tells nothing of a
    disk that is full.
    """
    nobody = Worker(f"trial {uuid.uuid4().hex}", "", "", "", now, now, {}, {})
    try:
        with store.write() as connection:
            workers.say(connection, nobody)
            workers.leave(connection, nobody.id)
    except DatabaseBusy:
        return None
    except DatabaseUnavailable as exc:
        return str(exc).replace(f"the database {store.where}", "the database", 1)
    return None
