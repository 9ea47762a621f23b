"""Rounds know what was expected of them before their labels came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rounds", sa.Column("expected", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("rounds", "expected")
