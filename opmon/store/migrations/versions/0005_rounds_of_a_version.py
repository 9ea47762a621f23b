"""Rounds of one model version are found by their number and by their time, however many there are."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_VERSION = ["monitor", "model_name", "model_version"]


def upgrade() -> None:
    op.create_index("ix_rounds_version_number", "rounds", [*_VERSION, "number"], unique=False)
    op.create_index("ix_rounds_version_ends_at", "rounds", [*_VERSION, "ends_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_rounds_version_ends_at", table_name="rounds")
    op.drop_index("ix_rounds_version_number", table_name="rounds")
