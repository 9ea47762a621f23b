"""A registry other than MLflow may call a run by more than 64 characters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_COLUMNS = ("run_id", "timeline_run_id")


def upgrade() -> None:
    _let_them_have(64, 1000)


def _let_them_have(before: int, characters: int) -> None:
    if op.get_bind().dialect.name == "sqlite":
        return  # it holds text of any length
    for column in _COLUMNS:
        op.alter_column("rounds", column, existing_type=sa.String(before), type_=sa.String(characters))


def downgrade() -> None:
    _let_them_have(1000, 64)
