"""Where each monitor stands in what it reads: for every part of the log, the position behind what rounds have taken.

A log may have as many parts as there were rounds, and each look at it asks for all of them: some hundred parts are kept
together in one row, packed. The newest row is written until it is full; what it says of a part holds over older rows.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store.schema import positions

PARTS_A_ROW = 500


def read(connection: Connection, monitor: str) -> dict[str, str]:
    """Where the monitor stands in every part it has read."""
    query = sa.select(positions.c.parts).where(positions.c.monitor == monitor).order_by(positions.c.id)
    known: dict[str, str] = {}
    for packed in connection.scalars(query):
        known |= unpack(packed)
    return known


def move(connection: Connection, monitor: str, stops: Mapping[str, str]) -> None:
    """Let the monitor stand at these positions, by part; in the transaction that gives what is before to a round."""
    newest = sa.select(positions).where(positions.c.monitor == monitor).order_by(positions.c.id.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    parts = {**(unpack(row.parts) if row is not None else {}), **stops}
    if row is None or len(parts) > PARTS_A_ROW:
        connection.execute(positions.insert().values(monitor=monitor, parts=pack(stops)))
    else:
        connection.execute(positions.update().where(positions.c.id == row.id).values(parts=pack(parts)))


def pack(parts: Mapping[str, str]) -> bytes:
    return zlib.compress(json.dumps(dict(parts), separators=(",", ":")).encode())


def unpack(packed: bytes) -> dict[str, str]:
    parts: dict[str, str] = json.loads(zlib.decompress(packed))
    return parts
