"""The table of tomographies: what pages ask again, beside the report in MLflow."""

from __future__ import annotations

import sqlalchemy as sa

from opmon.store.schema.base import Key, UtcDateTime, metadata

tomographies = sa.Table(
    "tomographies",
    metadata,
    sa.Column("round_id", Key, sa.ForeignKey("rounds.id"), primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    sa.Column("made_at", UtcDateTime, nullable=False),
    sa.Column("first_round", sa.Integer, nullable=False),  # the first round of which it looked at inputs
    sa.Column("summary", sa.JSON(none_as_null=True), nullable=False),  # the shares that its history shows
    sa.Column("tests", sa.LargeBinary),  # all of it, to be asked; NULL: too large, or newer ones took its place
    sa.Column("examples", sa.LargeBinary),  # some inputs under some tests; NULL: none, or erased
    sa.Index("ix_tomographies_monitor", "monitor", "round_id"),
)
