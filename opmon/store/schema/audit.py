"""The table of who did what."""

from __future__ import annotations

import sqlalchemy as sa

from opmon.store.schema.base import Key, UtcDateTime, metadata

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
    sa.Column("who", sa.String(200), nullable=False),  # empty where nobody said who they are
    sa.Column("known_by", sa.String(20), nullable=False),
    sa.Column("origin", sa.String(100), nullable=False),  # the address, or the machine of a command
    sa.Column("act", sa.String(40), nullable=False),
    sa.Column("monitor", sa.String(200)),
    sa.Column("about", sa.String(300), nullable=False),
    sa.Column("times", sa.Integer, nullable=False),
)
