"""Tokens run out and are kept by a slow hash; who did what is noted. Tokens that were given out stay good."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from opmon import tokens

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    with op.batch_alter_table("annotators") as batch:
        batch.add_column(sa.Column("found_by", sa.String(length=16), server_default="", nullable=False))
        batch.add_column(sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True))
        batch.alter_column("token_hash", existing_type=sa.String(64), type_=sa.String(200), existing_nullable=False)
        batch.drop_constraint("uq_annotators_token_hash", type_="unique")
    connection = op.get_bind()
    change = sa.text("UPDATE annotators SET found_by = :found_by, token_hash = :kept WHERE name = :name")
    for name, sha256 in connection.execute(sa.text("SELECT name, token_hash FROM annotators")).all():
        own = {"name": name, "found_by": tokens.found_by(sha256), "kept": tokens.kept_of(sha256)}
        connection.execute(change, own)
    with op.batch_alter_table("annotators") as batch:
        batch.alter_column("found_by", existing_type=sa.String(16), server_default=None, existing_nullable=False)
        batch.create_unique_constraint("uq_annotators_found_by", ["found_by"])
    op.create_table(
        "audit",
        sa.Column("id", KEY, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("known_by", sa.String(length=20), nullable=False),
        sa.Column("origin", sa.String(length=100), nullable=False),
        sa.Column("act", sa.String(length=40), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=True),
        sa.Column("about", sa.String(length=300), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_at", "audit", ["at"])


def downgrade() -> None:
    """Nobody's token works any more: what was kept of them cannot be had from what is kept now."""
    op.drop_table("audit")
    with op.batch_alter_table("annotators") as batch:
        batch.drop_constraint("uq_annotators_found_by", type_="unique")
    op.execute("UPDATE annotators SET token_hash = found_by")
    with op.batch_alter_table("annotators") as batch:
        batch.drop_column("expires_at")
        batch.drop_column("found_by")
        batch.alter_column("token_hash", existing_type=sa.String(200), type_=sa.String(64), existing_nullable=False)
        batch.create_unique_constraint("uq_annotators_token_hash", ["token_hash"])
