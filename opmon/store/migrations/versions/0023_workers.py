"""Processes say that they are there, cycles are counted, and an event need not be one of a round."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from opmon.store.schema.base import UtcDateTime

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_WHOLE = ("failures", sa.Integer), ("count", sa.BigInteger), ("failed", sa.BigInteger)


def upgrade() -> None:
    for name, kind in _WHOLE:
        op.add_column("cycles", sa.Column(name, kind(), nullable=False, server_default="0"))
    for name in ("seconds", "last_seconds"):
        op.add_column("cycles", sa.Column(name, sa.Float(), nullable=False, server_default="0"))
    op.create_table(
        "workers",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("process", sa.String(300), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("version", sa.String(50), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.Column("busy", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("breakers", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    _let_events_be_of_no_round(may=True)


def _let_events_be_of_no_round(may: bool) -> None:
    """SQLite makes the table anew, which it does not while rows of another refer to it: those wait beside it."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("events", "round_id", existing_type=sa.BigInteger(), nullable=may)
        return
    made = op.get_bind().execute(
        sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = 'deliveries' AND sql IS NOT NULL ORDER BY type DESC")
    )
    statements = [row[0] for row in made]
    op.execute("CREATE TEMPORARY TABLE kept_deliveries AS SELECT * FROM deliveries")
    op.drop_table("deliveries")
    with op.batch_alter_table("events") as batch:
        batch.alter_column("round_id", existing_type=sa.Integer(), nullable=may)
    for statement in statements:
        op.execute(sa.text(statement))
    op.execute("INSERT INTO deliveries SELECT * FROM kept_deliveries")
    op.execute("DROP TABLE kept_deliveries")


def downgrade() -> None:
    _let_events_be_of_no_round(may=False)
    op.drop_table("workers")
    with op.batch_alter_table("cycles") as batch:
        for name in ("seconds", "last_seconds", "failed", "count", "failures"):
            batch.drop_column(name)
