"""What the draws of an estimate tell is kept beside it; estimates from before have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tallies",
        sa.Column("estimate_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tally", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["estimate_id"], ["estimates.id"], name=op.f("fk_tallies_estimate_id_estimates")),
        sa.PrimaryKeyConstraint("estimate_id", name=op.f("pk_tallies")),
    )


def downgrade() -> None:
    op.drop_table("tallies")
