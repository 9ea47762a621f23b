"""The tables. Migrations in ``migrations/`` lead here; a test compares the two.

A row of ``rounds`` moves through ``opened → scored → drawn → labelling → estimated → closed``, unless somebody gives it
up (``abandoned``). ``slices`` is the cursor: what a monitor has read is the union of its slices, and its unique
constraint makes reading a piece twice impossible.
``labels``, ``estimates`` and ``verdicts`` are only ever added to.
A task is settled where it ``lacks`` nothing: as many annotators as it needs have spoken of it, or its truth is there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

Row: TypeAlias = sa.Row[tuple[object, ...]]
"""A row by the names of its columns."""
Query: TypeAlias = sa.Select[tuple[object, ...]]
"""A query for such rows."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with its time zone; stored in UTC, so that SQLite and PostgreSQL give back the same."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite numbers rows only in a column that is exactly INTEGER."""


def _round_id() -> sa.Column[int]:
    return sa.Column("round_id", Key, sa.ForeignKey("rounds.id"), nullable=False)


rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("model_name", sa.String(300), nullable=False),
    sa.Column("model_version", sa.String(200), nullable=False),
    sa.Column(
        "only_version", sa.String(200)
    ),  # set where the log names versions: the others' rows belong to other rounds
    sa.Column(
        "plan", sa.JSON(none_as_null=True), nullable=False
    ),  # sampler, budget, level, seed as configured when the round opened
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("starts_at", UtcDateTime),
    sa.Column("ends_at", UtcDateTime),
    sa.Column("deadline_at", UtcDateTime),
    sa.Column("asks_at", UtcDateTime),  # from when on annotators are asked: until then truth may come by itself
    sa.Column("closed_at", UtcDateTime),
    sa.Column("received", sa.Integer, nullable=False),
    sa.Column("inputs", sa.Integer),
    sa.Column("unscorable", sa.Integer),
    sa.Column("losses", sa.JSON(none_as_null=True)),  # what is left out, by kind and reason
    sa.Column("duplicates", sa.Integer),
    sa.Column("skew", sa.Float),
    sa.Column("classes", sa.JSON(none_as_null=True)),
    sa.Column("spellings", sa.JSON(none_as_null=True)),  # what else labels may call the classes -> the class
    sa.Column("draw", sa.LargeBinary),
    sa.Column("waves", sa.Integer, nullable=False, default=0),
    sa.Column("drift", sa.JSON(none_as_null=True)),
    sa.Column("reported", sa.Integer, nullable=False, default=-1),  # the revision that MLflow has been told
    sa.Column("run_id", sa.String(64)),
    sa.Column("timeline_run_id", sa.String(64)),
    sa.Column("problem", sa.Text),  # why the last attempt to move it did not succeed
    sa.Column("ready", sa.Boolean, nullable=False, server_default=sa.false()),  # labels let it go on: see readiness
    sa.Column("asked", sa.Integer, nullable=False, server_default="0"),  # its tasks
    sa.Column("spoken", sa.Integer, nullable=False, server_default="0"),  # those of which all was said that was asked
    sa.Column("gold_asked", sa.Integer, nullable=False, server_default="0"),  # its gold tasks: in no other count of it
    sa.Column("gold_spoken", sa.Integer, nullable=False, server_default="0"),
    sa.Column("urgent", sa.Boolean, nullable=False, server_default=sa.false()),  # annotators meet its tasks first
    sa.UniqueConstraint("monitor", "number"),
    sa.Index("ix_rounds_progress", "monitor", "state", "asked", "spoken"),
    sa.Index(
        "ix_rounds_open", "monitor", sqlite_where=sa.text("spoken < asked"), postgresql_where=sa.text("spoken < asked")
    ),
    sa.Index("ix_rounds_version_number", "monitor", "model_name", "model_version", "number"),
    sa.Index("ix_rounds_version_ends_at", "monitor", "model_name", "model_version", "ends_at"),
    sa.Index("ix_rounds_ready", "monitor", sqlite_where=sa.text("ready = 1"), postgresql_where=sa.text("ready")),
)

slices = sa.Table(
    "slices",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _round_id(),
    sa.Column("monitor", sa.String(200), nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("part", sa.String(1000), nullable=False),
    sa.Column("start", sa.String(200), nullable=False),
    sa.Column("stop", sa.String(200), nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("arrived_at", UtcDateTime, nullable=False),
    sa.Column("only_version", sa.String(200), nullable=False, default=""),
    sa.UniqueConstraint("monitor", "part", "start", "only_version"),
    sa.Index("ix_slices_round_id", "round_id"),
)

positions = sa.Table(
    "positions",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    sa.Column("parts", sa.LargeBinary, nullable=False),  # where it stands in some hundred parts of its log, packed
    sa.Index("ix_positions_monitor", "monitor"),
)

seen = sa.Table(
    "seen",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _round_id(),
    sa.Column(
        "hashes", sa.LargeBinary, nullable=False
    ),  # of the round's input ids, sorted uint64: finds what comes twice
    sa.UniqueConstraint("round_id"),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    _round_id(),
    sa.Column("wave", sa.Integer, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),  # the random order in which annotators meet them
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("input_id", sa.String(1000), nullable=False),
    sa.Column("prediction", sa.Text, nullable=False),
    sa.Column("variables", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("payload", sa.JSON(none_as_null=True), nullable=False),
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
    _round_id(),
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

estimates = sa.Table(
    "estimates",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _round_id(),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("quantity", sa.String(50), nullable=False),
    sa.Column("unit", sa.String(50), nullable=False, server_default=""),
    sa.Column("value", sa.Float, nullable=False),
    sa.Column("low", sa.Float, nullable=False),
    sa.Column("high", sa.Float, nullable=False),
    sa.Column("level", sa.Float, nullable=False),
    sa.Column("standard_error", sa.Float),
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("frame_size", sa.Integer, nullable=False),
    sa.Column("response", sa.Float, nullable=False),
    sa.Column("method", sa.String(200), nullable=False),
    sa.Column("provisional", sa.Boolean, nullable=False),
    sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("labels_seen", sa.Integer, nullable=False),
    sa.Column("made_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("round_id", "revision"),
)

tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("tally", sa.LargeBinary, nullable=False),
)

corrections = sa.Table(
    "corrections",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("value", sa.Float),  # the estimate corrected for annotators who err; NULL: too little is known of them
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("standard_error", sa.Float),
    sa.Column("why", sa.Text, nullable=False),  # why there is none
    sa.Column("checks", sa.Integer, nullable=False),  # answers that others, or known truths, are there to check
    sa.Column("agreement", sa.Float),
    sa.Column("alpha", sa.Float),
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("id", Key, primary_key=True),
    _round_id(),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("rule", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("threshold", sa.Float),
    sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
    sa.UniqueConstraint("round_id", "revision", "rule"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("monitor", sa.String(200), nullable=False),
    _round_id(),
    sa.Column("rule", sa.String(200), nullable=False),
    sa.Column("type", sa.String(50), nullable=False),
    sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("acknowledged_at", UtcDateTime),
    sa.Column("acknowledged_by", sa.String(200)),
    sa.Column("note", sa.Text),
    sa.Index("ix_events_monitor_created_at", "monitor", "created_at"),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("event_id", sa.String(64), sa.ForeignKey("events.id"), nullable=False),
    sa.Column("action", sa.String(200), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),  # pending, delivered, dead, withdrawn
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", UtcDateTime, nullable=False),
    sa.Column("delivered_at", UtcDateTime),
    sa.Column("problem", sa.Text),
    sa.UniqueConstraint("event_id", "action"),
    sa.Index("ix_deliveries_state_next_at", "state", "next_at"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
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

set_aside = sa.Table(
    "set_aside",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("part", sa.String(1000), primary_key=True),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("before", sa.String(200)),  # where the monitor stood in it: given back, it is read from there
    sa.Column("passing", sa.String(200), nullable=False),  # where it stands now: behind all that is in it
)

waits = sa.Table(
    "waits",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("since", UtcDateTime, nullable=False),  # the oldest input that is in no round yet
)

cycles = sa.Table(
    "cycles",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),  # when the last one ended
    sa.Column("succeeded_at", UtcDateTime),  # when one last did all that it had to do
    sa.Column("problem", sa.Text),  # why the last one took no inputs on
)

ticks = sa.Table(
    "ticks",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),  # when the schedule last began on this monitor: what was missed since
)

annotators = sa.Table(
    "annotators",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("monitors", sa.JSON(none_as_null=True)),  # NULL: all of them
    sa.Column("token_hash", sa.String(64), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("revoked_at", UtcDateTime),
    sa.UniqueConstraint("token_hash"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_hash", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("annotator", sa.String(200)),  # NULL: nobody had a token, and a name was enough
    sa.Column("expires_at", UtcDateTime, nullable=False),
)
