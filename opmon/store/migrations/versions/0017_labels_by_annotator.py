"""The labels of a task are found by their annotator too."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_labels_task_id_annotator", "labels", ["task_id", "annotator"], unique=False)
    op.drop_index("ix_labels_task_id", table_name="labels")


def downgrade() -> None:
    op.create_index("ix_labels_task_id", "labels", ["task_id"], unique=False)
    op.drop_index("ix_labels_task_id_annotator", table_name="labels")
