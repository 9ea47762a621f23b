"""Rounds estimate further measures beside the main one; the scores of drawn inputs are kept with their tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

NAME = sa.String(300).with_variant(sa.String(50), "sqlite")
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("scores", sa.LargeBinary(), nullable=True))
    op.add_column("estimates", sa.Column("meaning", sa.JSON(none_as_null=True), nullable=True))
    _resize_names(50, 300)
    op.create_table(
        "measured",
        sa.Column("estimate_id", KEY, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("measure", sa.String(length=300), nullable=False),
        sa.Column("quantity", NAME, nullable=False),
        sa.Column("unit", sa.String(length=50), server_default="", nullable=False),
        sa.Column("meaning", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("standard_error", sa.Float(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("response", sa.Float(), nullable=True),
        sa.Column("method", sa.String(length=200), nullable=True),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("why", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["estimate_id"], ["estimates.id"], name=op.f("fk_measured_estimate_id_estimates")),
        sa.PrimaryKeyConstraint("estimate_id", "place", name=op.f("pk_measured")),
    )


def downgrade() -> None:
    op.drop_table("measured")
    _resize_names(300, 50)
    op.drop_column("estimates", "meaning")
    op.drop_column("tasks", "scores")


def _resize_names(before: int, after: int) -> None:
    """Let the names of quantities be longer, or shorter; SQLite holds text of any length in a column."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("estimates", "quantity", existing_type=sa.String(before), type_=sa.String(after))
