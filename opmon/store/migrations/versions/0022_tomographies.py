"""Tomographies are kept beside their rounds, so that pages can ask them without MLflow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tomographies",
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("monitor", sa.String(200), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_round", sa.Integer(), nullable=False),
        sa.Column("summary", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("tests", sa.LargeBinary(), nullable=True),
        sa.Column("examples", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_tomographies_round_id")),
        sa.PrimaryKeyConstraint("round_id", name=op.f("pk_tomographies")),
    )
    op.create_index("ix_tomographies_monitor", "tomographies", ["monitor", "round_id"])


def downgrade() -> None:
    op.drop_table("tomographies")
