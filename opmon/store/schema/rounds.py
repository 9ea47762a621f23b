"""The tables of rounds: what is read, where a monitor stands in its log, and who works on it."""

from __future__ import annotations

import sqlalchemy as sa

from opmon.store.schema.base import Key, UtcDateTime, metadata, round_id

_Run = sa.String(1000).with_variant(sa.String(64), "sqlite")
"""What a registry calls a run: MLflow's are short, others may name them by what they are. SQLite holds any length."""

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
    sa.Column("sliced", sa.JSON(none_as_null=True)),  # what its inputs are divided into, and how many are where
    sa.Column("draw", sa.LargeBinary),
    sa.Column("waves", sa.Integer, nullable=False, default=0),
    sa.Column("drift", sa.JSON(none_as_null=True)),
    sa.Column("expected", sa.JSON(none_as_null=True)),  # what was told of it before its labels, or why nothing was
    sa.Column("reported", sa.Integer, nullable=False, default=-1),  # the revision that MLflow has been told
    sa.Column("run_id", _Run),
    sa.Column("timeline_run_id", _Run),
    sa.Column("problem", sa.Text),  # why the last attempt to move it did not succeed
    sa.Column("ready", sa.Boolean, nullable=False, server_default=sa.false()),  # labels let it go on: see readiness
    sa.Column("asked", sa.Integer, nullable=False, server_default="0"),  # its tasks
    sa.Column("spoken", sa.Integer, nullable=False, server_default="0"),  # those of which all was said that was asked
    sa.Column("gold_asked", sa.Integer, nullable=False, server_default="0"),  # its gold tasks: in no other count of it
    sa.Column("gold_spoken", sa.Integer, nullable=False, server_default="0"),
    sa.Column("pruned", sa.JSON(none_as_null=True)),  # what of it was removed: payloads, frames, artifacts, rounds
    sa.Column("labels_pruned_at", UtcDateTime),  # when its tasks, labels and draw were removed
    sa.Column("first_task", sa.BigInteger),  # the numbers of the tasks that were removed, among those of other rounds
    sa.Column("last_task", sa.BigInteger),
    sa.Column("urgent", sa.Boolean, nullable=False, server_default=sa.false()),  # annotators meet its tasks first
    sa.UniqueConstraint("monitor", "number"),
    sa.Index("ix_rounds_progress", "monitor", "state", "asked", "spoken"),
    sa.Index(
        "ix_rounds_open", "monitor", sqlite_where=sa.text("spoken < asked"), postgresql_where=sa.text("spoken < asked")
    ),
    sa.Index("ix_rounds_version_number", "monitor", "model_name", "model_version", "number"),
    sa.Index("ix_rounds_version_ends_at", "monitor", "model_name", "model_version", "ends_at"),
    sa.Index(
        "ix_rounds_emptied",
        *("last_task", "first_task"),
        sqlite_where=sa.text("labels_pruned_at IS NOT NULL"),
        postgresql_where=sa.text("labels_pruned_at IS NOT NULL"),
    ),
    sa.Index("ix_rounds_ready", "monitor", sqlite_where=sa.text("ready = 1"), postgresql_where=sa.text("ready")),
)

slices = sa.Table(
    "slices",
    metadata,
    sa.Column("id", Key, primary_key=True),
    round_id(),
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
    round_id(),
    sa.Column(
        "hashes", sa.LargeBinary, nullable=False
    ),  # of the round's input ids, sorted uint64: finds what comes twice
    sa.UniqueConstraint("round_id"),
)

waits = sa.Table(
    "waits",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("since", UtcDateTime, nullable=False),  # the oldest input that is in no round yet
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

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
)

cycles = sa.Table(
    "cycles",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),  # when the last one ended
    sa.Column("succeeded_at", UtcDateTime),  # when one last did all that it had to do
    sa.Column("problem", sa.Text),  # why the last one took no inputs on
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),  # failed running, up to the last one
    sa.Column("count", sa.BigInteger, nullable=False, server_default="0"),  # of all cycles
    sa.Column("failed", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("seconds", sa.Float, nullable=False, server_default="0"),  # of all cycles together
    sa.Column("last_seconds", sa.Float, nullable=False, server_default="0"),
    sa.Column("killed", sa.Integer, nullable=False, server_default="0"),  # processes running that ended in the middle
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),  # of one process
    sa.Column("process", sa.String(300), nullable=False),  # where it runs, for people
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("version", sa.String(50), nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("seen_at", UtcDateTime, nullable=False),  # when it last said that it is there
    sa.Column("busy", sa.JSON(none_as_null=True), nullable=False),  # which monitors it has long been at, and what at
    sa.Column("breakers", sa.JSON(none_as_null=True), nullable=False),  # the targets it leaves alone, and until when
)

ticks = sa.Table(
    "ticks",
    metadata,
    sa.Column("monitor", sa.String(200), primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),  # when the schedule last began on this monitor: what was missed since
)
