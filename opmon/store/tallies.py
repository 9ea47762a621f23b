"""What the draws of each estimate tell, kept beside it: rolling estimates join draws, and never read labels again."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.estimators.tally import Tally
from opmon.store.schema import tallies

AT_ONCE = 500
"""Keys in one query: databases bound the variables of a statement."""


def add(connection: Connection, estimate: int, tally: Tally) -> None:
    connection.execute(tallies.insert().values(estimate_id=estimate, tally=pack(tally)))


def read(connection: Connection, estimates: Iterable[int]) -> dict[int, Tally]:
    """The tallies of these estimates, by the estimate's number; those that have none are left out."""
    keys = sorted(set(estimates))
    found: dict[int, Tally] = {}
    for start in range(0, len(keys), AT_ONCE):
        query = sa.select(tallies).where(tallies.c.estimate_id.in_(keys[start : start + AT_ONCE]))
        found |= {row.estimate_id: unpack(row.tally) for row in connection.execute(query)}
    return found


def pack(tally: Tally) -> bytes:
    """A tally as bytes: an ``.npz`` of plain arrays, no pickles."""
    out = io.BytesIO()
    arrays: dict[str, Any] = {field.name: np.asarray(getattr(tally, field.name)) for field in fields(Tally)}
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def unpack(data: bytes) -> Tally:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        known = {name: arrays[name] for name in arrays.files}
    single = {name: float(known[name]) for name in ("known", "gain") if name in known}
    return Tally(**known | single)
