"""Rounds count what was asked and answered; where a monitor stands in its log is kept packed."""

from __future__ import annotations

import json
import zlib
from itertools import groupby

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COUNT = """
UPDATE rounds SET
  asked = (SELECT count(*) FROM tasks WHERE tasks.round_id = rounds.id),
  spoken = (SELECT count(DISTINCT labels.task_id) FROM labels WHERE labels.round_id = rounds.id)
"""
_STOPS = """
SELECT monitor, part, stop FROM slices WHERE id IN (SELECT max(id) FROM slices GROUP BY monitor, part)
ORDER BY monitor, id
"""
_PARTS_A_ROW = 500


def upgrade() -> None:
    for name in ("asked", "spoken"):
        op.add_column("rounds", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.execute(_COUNT)
    op.create_index("ix_rounds_progress", "rounds", ["monitor", "state", "asked", "spoken"], unique=False)
    op.drop_index("ix_rounds_monitor_state", table_name="rounds")
    some_open = sa.text("spoken < asked")
    op.create_index("ix_rounds_open", "rounds", ["monitor"], sqlite_where=some_open, postgresql_where=some_open)
    _pack_positions()


def _pack_positions() -> None:
    table = op.create_table(
        "positions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("parts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_positions")),
    )
    op.create_index("ix_positions_monitor", "positions", ["monitor"], unique=False)
    connection = op.get_bind()
    stops = connection.execute(sa.text(_STOPS)).all()
    for monitor, rows in groupby(stops, key=lambda row: row.monitor):
        own = list(rows)
        for start in range(0, len(own), _PARTS_A_ROW):
            some = {row.part: row.stop for row in own[start : start + _PARTS_A_ROW]}
            text = json.dumps(some, separators=(",", ":"))
            connection.execute(table.insert().values(monitor=monitor, parts=zlib.compress(text.encode())))


def downgrade() -> None:
    op.drop_table("positions")
    op.create_index("ix_rounds_monitor_state", "rounds", ["monitor", "state"], unique=False)
    op.drop_index("ix_rounds_open", table_name="rounds")
    op.drop_index("ix_rounds_progress", table_name="rounds")
    for name in ("spoken", "asked"):
        op.drop_column("rounds", name)
