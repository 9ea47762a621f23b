"""Rounds know what their inputs are divided into, and estimates have those of their slices beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("sliced", sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        "sliced",
        sa.Column("estimate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("found", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["estimate_id"], ["estimates.id"], name=op.f("fk_sliced_estimate_id_estimates")),
        sa.PrimaryKeyConstraint("estimate_id", name=op.f("pk_sliced")),
    )


def downgrade() -> None:
    op.drop_table("sliced")
    op.drop_column("rounds", "sliced")
