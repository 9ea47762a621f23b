"""Estimates corrected for annotators who err are kept beside the plain ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "corrections",
        sa.Column("estimate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("standard_error", sa.Float(), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("agreement", sa.Float(), nullable=True),
        sa.Column("alpha", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["estimate_id"], ["estimates.id"], name=op.f("fk_corrections_estimate_id_estimates")),
        sa.PrimaryKeyConstraint("estimate_id", name=op.f("pk_corrections")),
    )


def downgrade() -> None:
    op.drop_table("corrections")
