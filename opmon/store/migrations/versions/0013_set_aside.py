"""Parts of a log that cannot be read are set aside, with the reason."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "set_aside",
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("part", sa.String(length=1000), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("before", sa.String(length=200), nullable=True),
        sa.Column("passing", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("monitor", "part", name=op.f("pk_set_aside")),
    )


def downgrade() -> None:
    op.drop_table("set_aside")
