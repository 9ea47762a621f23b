"""Rounds say whether labels let them go on"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_READY = """
UPDATE rounds SET ready = CASE
  WHEN state = 'labelling' THEN NOT EXISTS (
    SELECT 1 FROM tasks WHERE tasks.round_id = rounds.id
    AND NOT EXISTS (SELECT 1 FROM labels WHERE labels.task_id = tasks.id))
  WHEN state = 'estimated' THEN true
  WHEN (SELECT max(labels_seen) FROM estimates WHERE estimates.round_id = rounds.id) IS NULL
    THEN EXISTS (SELECT 1 FROM labels WHERE labels.round_id = rounds.id AND labels.truth IS NOT NULL)
  ELSE (SELECT count(*) FROM labels WHERE labels.round_id = rounds.id)
    > (SELECT max(labels_seen) FROM estimates WHERE estimates.round_id = rounds.id)
END
WHERE state IN ('labelling', 'estimated', 'closed')
"""


def upgrade() -> None:
    op.add_column("rounds", sa.Column("ready", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(_READY)
    op.create_index(
        "ix_rounds_ready",
        "rounds",
        ["monitor"],
        unique=False,
        sqlite_where=sa.text("ready = 1"),
        postgresql_where=sa.text("ready"),
    )


def downgrade() -> None:
    op.drop_index("ix_rounds_ready", table_name="rounds")
    op.drop_column("rounds", "ready")
