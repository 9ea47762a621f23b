"""A label's round is that of its task: no constraint of its own is checked for each label any more."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("labels") as batch:
        batch.drop_constraint("fk_labels_round_id", type_="foreignkey")


def downgrade() -> None:
    with op.batch_alter_table("labels") as batch:
        batch.create_foreign_key("fk_labels_round_id", "rounds", ["round_id"], ["id"])
