"""Estimates say their unit; regressions are told as mean squared errors, no longer as "1 − mean squared error"."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("estimates", sa.Column("unit", sa.String(length=50), server_default="", nullable=False))
    rounds = sa.table("rounds", sa.column("id", sa.BigInteger), sa.column("plan", sa.JSON))
    estimates = sa.table("estimates", *(sa.column(name) for name in ("round_id", "quantity", "value", "low", "high")))
    connection = op.get_bind()
    of_regressions = [
        row.id for row in connection.execute(sa.select(rounds)) if (row.plan or {}).get("problem") == "regression"
    ]
    for start in range(0, len(of_regressions), 500):
        connection.execute(
            estimates.update()
            .where(estimates.c.round_id.in_(of_regressions[start : start + 500]), estimates.c.quantity == "accuracy")
            .values(
                quantity="mean squared error",
                value=1 - estimates.c.value,
                low=1 - estimates.c.high,
                high=1 - estimates.c.low,
            )
        )


def downgrade() -> None:
    op.drop_column("estimates", "unit")
