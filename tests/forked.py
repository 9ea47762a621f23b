"""Processes that tests start and kill, forked from one that has imported what they need: kills hit the work."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = (
    "pytest",
    "psycopg",
    "jinja2",
    "pyarrow.dataset",
    "rich.progress",
    "onnxruntime",
    "matplotlib.figure",
    "alembic.command",
    "mlflow",
    "mlflow.store.tracking.sqlalchemy_store",
    "opmon.cli.run",
    "opmon.judges.openai",
    "opmon.monitor",
    "opmon.triggers.webhook",
    "opmon.truth.kept",
)


def forks() -> ForkServerContext:
    """Where such processes come from.

    A test process has one server that forks them, and whoever starts it first decides what it has imported: what all
    need stands here.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context
