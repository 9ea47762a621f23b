"""The one SQL database: what must be transactional lives here (rounds, tasks, labels, events, leases).

``store`` lies below the stages that use it (labels, triggers), so that a stage can keep its own queries beside its own
logic without importing a sibling. The database is SQLite by default and PostgreSQL in production.
"""

from __future__ import annotations
