"""Truth that arrives by itself: when an input was answered, from when on annotators are asked, what was read so far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("asks_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tasks", sa.Column("input_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "truths",
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("known_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("refused", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("monitor", name=op.f("pk_truths")),
    )


def downgrade() -> None:
    op.drop_table("truths")
    op.drop_column("tasks", "input_at")
    op.drop_column("rounds", "asks_at")
