"""Annotators are assigned tasks, several may speak of one, some tasks have a known truth; pictures are bytes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SETTLED = "UPDATE tasks SET lacks = 0 WHERE EXISTS (SELECT 1 FROM labels WHERE labels.task_id = tasks.id)"


def upgrade() -> None:
    for name in ("gold_asked", "gold_spoken"):
        op.add_column("rounds", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("rounds", sa.Column("urgent", sa.Boolean(), nullable=False, server_default=sa.false()))
    for name, default in (("needs", "1"), ("confirm", "0"), ("lacks", "1")):
        op.add_column("tasks", sa.Column(name, sa.Integer(), nullable=False, server_default=default))
    op.add_column("tasks", sa.Column("gold", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(_SETTLED)
    for name, columns, rows in (
        ("ix_tasks_open", ["round_id", "wave", "place"], sa.text("lacks > 0")),
        ("ix_tasks_gold", ["monitor", "input_id"], sa.text("gold IS NOT NULL")),
    ):
        op.create_index(name, "tasks", columns, unique=False, sqlite_where=rows, postgresql_where=rows)
    op.add_column("labels", sa.Column("why", sa.Text(), nullable=True))
    op.add_column("labels", sa.Column("seconds", sa.Float(), nullable=True))
    op.add_column("labels", sa.Column("gold", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_labels_annotator_round_id", "labels", ["annotator", "round_id"], unique=False)
    op.create_table(
        "attachments",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("field", sa.String(length=300), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_attachments_task_id")),
        sa.PrimaryKeyConstraint("task_id", "field", name=op.f("pk_attachments")),
    )
    op.create_table(
        "assignments",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_assignments_task_id")),
        sa.PrimaryKeyConstraint("task_id", "annotator", name=op.f("pk_assignments")),
    )
    op.create_index("ix_assignments_annotator", "assignments", ["annotator"], unique=False)


def downgrade() -> None:
    op.drop_table("assignments")
    op.drop_table("attachments")
    op.drop_index("ix_labels_annotator_round_id", table_name="labels")
    for name in ("gold", "seconds", "why"):
        op.drop_column("labels", name)
    for name in ("ix_tasks_gold", "ix_tasks_open"):
        op.drop_index(name, table_name="tasks")
    for name in ("erased_at", "gold", "lacks", "confirm", "needs"):
        op.drop_column("tasks", name)
    for name in ("urgent", "gold_spoken", "gold_asked"):
        op.drop_column("rounds", name)
