"""Which tasks were handed to which label provider, and how far its answers were heard."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "handed",
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("provider", sa.String(200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_handed_task_id")),
        sa.PrimaryKeyConstraint("task_id", "provider", name=op.f("pk_handed")),
    )
    op.create_table(
        "providers",
        sa.Column("monitor", sa.String(200), nullable=False),
        sa.Column("provider", sa.String(200), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.Column("reconciled_at", sa.DateTime(timezone=True)),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("rests_until", sa.DateTime(timezone=True)),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("monitor", "provider", name=op.f("pk_providers")),
    )


def downgrade() -> None:
    op.drop_table("providers")
    op.drop_table("handed")
