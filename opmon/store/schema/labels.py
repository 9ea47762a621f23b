"""The tables of tasks, of who is asked, and of what is said."""

from __future__ import annotations

import sqlalchemy as sa

from opmon.store.schema.base import Key, UtcDateTime, metadata, round_id

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    round_id(),
    sa.Column("wave", sa.Integer, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),  # the random order in which annotators meet them
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("input_id", sa.String(1000), nullable=False),
    sa.Column("prediction", sa.Text, nullable=False),
    sa.Column("variables", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("scores", sa.LargeBinary),  # the probability of each class of its round, as float32; NULL: nobody asks
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("input_at", UtcDateTime),  # when production answered it: what the lag of its truth is counted from
    sa.Column("needs", sa.Integer, nullable=False, server_default="1"),  # so many annotators are to speak of it
    sa.Column("confirm", sa.Integer, nullable=False, server_default="0"),  # so many are to answer an apparent failure
    sa.Column("lacks", sa.Integer, nullable=False, server_default="1"),  # so many are still to speak; 0: settled
    sa.Column("gold", sa.Text),  # the known truth of an input that nobody drew: it is in no estimate and no count
    sa.Column("erased_at", UtcDateTime),  # when its payload was pruned
    sa.UniqueConstraint("round_id", "position"),
    sa.Index("ix_tasks_monitor_input_id", "monitor", "input_id"),
    sa.Index(
        "ix_tasks_open",
        *("round_id", "wave", "place"),
        sqlite_where=sa.text("lacks > 0"),
        postgresql_where=sa.text("lacks > 0"),
    ),
    sa.Index(
        "ix_tasks_gold",
        *("monitor", "input_id"),
        sqlite_where=sa.text("gold IS NOT NULL"),
        postgresql_where=sa.text("gold IS NOT NULL"),
    ),
)

attachments = sa.Table(
    "attachments",
    metadata,
    sa.Column("task_id", Key, sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("field", sa.String(300), primary_key=True),  # where in the payload it belongs
    sa.Column("content", sa.LargeBinary, nullable=False),
)

assignments = sa.Table(
    "assignments",
    metadata,
    sa.Column("task_id", Key, sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("annotator", sa.String(200), primary_key=True),
    sa.Column("until", UtcDateTime, nullable=False),  # then somebody else may have it
    sa.Index("ix_assignments_annotator", "annotator"),
)

labels = sa.Table(
    "labels",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("task_id", Key, sa.ForeignKey("tasks.id"), nullable=False),
    sa.Column("round_id", Key, nullable=False),  # its task's, whose constraint it has: one of its own is slow
    sa.Column("annotator", sa.String(200), nullable=False),
    sa.Column("truth", sa.Text),  # NULL: a skip
    sa.Column("why", sa.Text),  # why it was skipped
    sa.Column("seconds", sa.Float),  # how long the annotator took
    sa.Column("gold", sa.Boolean, nullable=False, server_default=sa.false()),  # of a gold task
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("received_at", UtcDateTime, nullable=False),
    sa.Index("ix_labels_task_id_annotator", "task_id", "annotator"),
    sa.Index("ix_labels_round_id", "round_id"),
    sa.Index("ix_labels_annotator_round_id", "annotator", "round_id"),
)

handed = sa.Table(
    "handed",
    metadata,
    sa.Column("task_id", Key, sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("provider", sa.String(200), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
)

providers = sa.Table(
    "providers",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("provider", sa.String(200), primary_key=True),
    sa.Column("cursor", sa.Text, nullable=False),
    sa.Column("reconciled_at", UtcDateTime),
    sa.Column("failures", sa.Integer, nullable=False),  # running
    sa.Column("failing_since", UtcDateTime),  # when the first of them was
    sa.Column("rests_until", UtcDateTime),
    sa.Column("problem", sa.Text),  # the last of them
)

truths = sa.Table(
    "truths",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("read_at", UtcDateTime, nullable=False),
    sa.Column("known_until", UtcDateTime),  # the time of the latest truth that was read
    sa.Column("taken", sa.BigInteger, nullable=False),
    sa.Column("refused", sa.JSON(none_as_null=True), nullable=False),  # why rows could not be taken, and how many
)

annotators = sa.Table(
    "annotators",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("monitors", sa.JSON(none_as_null=True)),  # NULL: all of them
    sa.Column("found_by", sa.String(16), nullable=False),  # the beginning of the token's SHA-256
    sa.Column("token_hash", sa.String(200), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("revoked_at", UtcDateTime),
    sa.Column("expires_at", UtcDateTime),  # NULL: never
    sa.UniqueConstraint("found_by"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("annotator", sa.String(200)),  # NULL: nobody had a token, and a name was enough, or a provider told it
    sa.Column("expires_at", UtcDateTime, nullable=False),
    sa.Column("groups", sa.JSON(none_as_null=True)),  # NULL: no provider told who it is
)
