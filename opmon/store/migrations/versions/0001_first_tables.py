"""The first tables"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "rounds",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("model_name", sa.String(length=300), nullable=False),
        sa.Column("model_version", sa.String(length=200), nullable=False),
        sa.Column("only_version", sa.String(length=200), nullable=True),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("received", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.Integer(), nullable=True),
        sa.Column("unscorable", sa.Integer(), nullable=True),
        sa.Column("duplicates", sa.Integer(), nullable=True),
        sa.Column("skew", sa.Float(), nullable=True),
        sa.Column("classes", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("draw", sa.LargeBinary(), nullable=True),
        sa.Column("waves", sa.Integer(), nullable=False),
        sa.Column("drift", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("reported", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("timeline_run_id", sa.String(length=64), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rounds")),
        sa.UniqueConstraint("monitor", "number", name=op.f("uq_rounds_monitor_number")),
    )
    op.create_index("ix_rounds_monitor_state", "rounds", ["monitor", "state"], unique=False)
    op.create_table(
        "ticks",
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("monitor", name=op.f("pk_ticks")),
    )
    op.create_table(
        "waits",
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("monitor", name=op.f("pk_waits")),
    )
    op.create_table(
        "estimates",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("quantity", sa.String(length=50), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=False),
        sa.Column("high", sa.Float(), nullable=False),
        sa.Column("level", sa.Float(), nullable=False),
        sa.Column("standard_error", sa.Float(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("frame_size", sa.Integer(), nullable=False),
        sa.Column("response", sa.Float(), nullable=False),
        sa.Column("method", sa.String(length=200), nullable=False),
        sa.Column("provisional", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("labels_seen", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_estimates_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_estimates")),
        sa.UniqueConstraint("round_id", "revision", name=op.f("uq_estimates_round_id_revision")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("rule", sa.String(length=200), nullable=False),
        sa.Column("type", sa.String(length=50), nullable=False),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("acknowledged_by", sa.String(length=200), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_events_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_monitor_created_at", "events", ["monitor", "created_at"], unique=False)
    op.create_table(
        "seen",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_seen_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seen")),
        sa.UniqueConstraint("round_id", name=op.f("uq_seen_round_id")),
    )
    op.create_table(
        "slices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(length=1000), nullable=False),
        sa.Column("start", sa.String(length=200), nullable=False),
        sa.Column("stop", sa.String(length=200), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("arrived_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("only_version", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_slices_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_slices")),
        sa.UniqueConstraint(
            "monitor", "part", "start", "only_version", name=op.f("uq_slices_monitor_part_start_only_version")
        ),
    )
    op.create_index("ix_slices_round_id", "slices", ["round_id"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("monitor", sa.String(length=200), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("input_id", sa.String(length=1000), nullable=False),
        sa.Column("prediction", sa.Text(), nullable=False),
        sa.Column("variables", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_tasks_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("round_id", "position", name=op.f("uq_tasks_round_id_position")),
    )
    op.create_index("ix_tasks_monitor_input_id", "tasks", ["monitor", "input_id"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("threshold", sa.Float(), nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_verdicts_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdicts")),
        sa.UniqueConstraint("round_id", "revision", "rule", name=op.f("uq_verdicts_round_id_revision_rule")),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("event_id", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], name=op.f("fk_deliveries_event_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("event_id", "action", name=op.f("uq_deliveries_event_id_action")),
    )
    op.create_index("ix_deliveries_state_next_at", "deliveries", ["state", "next_at"], unique=False)
    op.create_table(
        "labels",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("task_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("round_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("truth", sa.Text(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_labels_round_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_labels_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
    )
    op.create_index("ix_labels_round_id", "labels", ["round_id"], unique=False)
    op.create_index("ix_labels_task_id", "labels", ["task_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_labels_task_id", table_name="labels")
    op.drop_index("ix_labels_round_id", table_name="labels")
    op.drop_table("labels")
    op.drop_index("ix_deliveries_state_next_at", table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_table("verdicts")
    op.drop_index("ix_tasks_monitor_input_id", table_name="tasks")
    op.drop_table("tasks")
    op.drop_index("ix_slices_round_id", table_name="slices")
    op.drop_table("slices")
    op.drop_table("seen")
    op.drop_index("ix_events_monitor_created_at", table_name="events")
    op.drop_table("events")
    op.drop_table("estimates")
    op.drop_table("waits")
    op.drop_table("ticks")
    op.drop_index("ix_rounds_monitor_state", table_name="rounds")
    op.drop_table("rounds")
    op.drop_table("leases")
