"""A round knows when its tasks and labels were pruned, and which numbers they had."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("labels_pruned_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("rounds", sa.Column("first_task", sa.BigInteger(), nullable=True))
    op.add_column("rounds", sa.Column("last_task", sa.BigInteger(), nullable=True))
    pruned = sa.text("labels_pruned_at IS NOT NULL")
    op.create_index(
        "ix_rounds_emptied", "rounds", ["last_task", "first_task"], sqlite_where=pruned, postgresql_where=pruned
    )


def downgrade() -> None:
    op.drop_index("ix_rounds_emptied", table_name="rounds")
    with op.batch_alter_table("rounds") as batch:
        for column in ("last_task", "first_task", "labels_pruned_at"):
            batch.drop_column(column)
