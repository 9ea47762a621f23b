"""Several rounds together know their slices and further measures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rolled",
        sa.Column("estimate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("as_of", sa.Integer(), nullable=False),
        sa.Column("found", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["estimate_id"], ["estimates.id"], name=op.f("fk_rolled_estimate_id_estimates")),
        sa.PrimaryKeyConstraint("estimate_id", name=op.f("pk_rolled")),
    )


def downgrade() -> None:
    op.drop_table("rolled")
