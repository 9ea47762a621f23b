"""The tables of what is concluded: estimates, verdicts, events and their deliveries."""

from __future__ import annotations

import sqlalchemy as sa

from opmon.store.schema.base import Key, UtcDateTime, metadata, quantity_columns, round_id

estimates = sa.Table(
    "estimates",
    metadata,
    sa.Column("id", Key, primary_key=True),
    round_id(),
    sa.Column("revision", sa.Integer, nullable=False),
    *quantity_columns(),
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

measured = sa.Table(
    "measured",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True),  # in the order in which they are shown
    sa.Column("measure", sa.String(300), nullable=False),  # the entry of the configuration that it belongs to
    *quantity_columns(),
    sa.Column("value", sa.Float),  # NULL: it is not known
    sa.Column("low", sa.Float),
    sa.Column("high", sa.Float),
    sa.Column("standard_error", sa.Float),
    sa.Column("n", sa.Integer),
    sa.Column("response", sa.Float),
    sa.Column("method", sa.String(200)),
    sa.Column("notes", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("why", sa.Text),  # why it is not known
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

sliced = sa.Table(
    "sliced",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("found", sa.JSON(none_as_null=True), nullable=False),  # of each slice, in the order they are shown
)

rolled = sa.Table(
    "rolled",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("as_of", sa.Integer, nullable=False),  # the last round of those that are joined
    sa.Column("found", sa.JSON(none_as_null=True), nullable=False),  # the rounds, their slices and further measures
)

failure_groups = sa.Table(
    "failure_groups",
    metadata,
    sa.Column("estimate_id", Key, sa.ForeignKey("estimates.id"), primary_key=True),
    sa.Column("found", sa.JSON(none_as_null=True), nullable=False),  # what failures have in common, the largest first
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("id", Key, primary_key=True),
    round_id(),
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
    sa.Column("round_id", Key, sa.ForeignKey("rounds.id")),  # NULL: of no round, such as that a monitor is silent
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
