"""Alembic's entry: always on the connection it is handed, so that a migration is part of the caller's transaction."""

from __future__ import annotations

from alembic import context

from opmon.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, compare_type=True)
context.run_migrations()
