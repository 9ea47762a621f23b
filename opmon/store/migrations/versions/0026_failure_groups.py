"""Rounds know what their failures have in common."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "failure_groups",
        sa.Column("estimate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("found", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["estimate_id"], ["estimates.id"], name=op.f("fk_failure_groups_estimate_id_estimates")
        ),
        sa.PrimaryKeyConstraint("estimate_id", name=op.f("pk_failure_groups")),
    )


def downgrade() -> None:
    op.drop_table("failure_groups")
