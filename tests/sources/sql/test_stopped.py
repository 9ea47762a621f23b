"""A PostgreSQL that stands still in the middle of a statement is not waited for without end."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable
from opmon.sources.sql.connecting import session
from tests.sources.sql.conftest import Production


def test_a_stopped_server_is_cut_off(on_postgres: Production, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmon.sources.sql.connecting._GRACE", 0.2)
    stopped: list[int] = []
    try:
        with pytest.raises(DatabaseUnavailable, match="did not answer while the log was read"):
            ask_while_stopped(on_postgres.address, stopped)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def ask_while_stopped(address: str, stopped: list[int]) -> None:
    with session(address, "the log", timedelta(seconds=1)) as opened:
        stopped.append(int(opened.row(sa.text("SELECT pg_backend_pid()"))[0]))
        os.kill(stopped[0], signal.SIGSTOP)
        opened.rows(sa.text("SELECT 1"))
