"""Rounds keep what is left out of them, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("losses", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("rounds", "losses")
