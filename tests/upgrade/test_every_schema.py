"""From every schema there ever was, with rows in every table, to today's: nothing is lost, on both databases."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from opmon.store import examining
from opmon.store._copying import tables_of
from opmon.store.backup import opened
from opmon.store.engine import Store, connect, open_store
from opmon.store.migrate import HEAD, REVISIONS, schema_of
from opmon.store.restoring import restore
from tests.upgrade.filled import filled

CHANGES = {
    "estimates": {"quantity", "unit", "value", "low", "high"},  # 0003: regressions are told as mean squared errors
    "rounds": {"plan", "reported"},
    "annotators": {"token_hash"},  # 0021: kept by a slow hash
}
"""What migrations write anew; it has tests of its own."""


Contents = dict[str, dict[Any, Mapping[str, Any]]]
"""The rows of each table by their keys."""
_todays: dict[str, list[sa.Table]] = {}


@cache
def before_of(revision: str) -> Contents:
    """What is in that schema's file."""
    file = opened(filled(revision))
    found = contents(file)
    file.close()
    return found


def contents(store: Store) -> Contents:
    found: Contents = {}
    with store.read() as connection:
        today = schema_of(store) == HEAD
        tables = _todays.get(connection.dialect.name) if today else None
        tables = tables_of(connection) if tables is None else tables
        if today:
            _todays[connection.dialect.name] = tables
        for table in tables:
            keys = [column.name for column in table.primary_key]
            rows = [row._mapping for row in connection.execute(sa.select(table))]
            found[table.name] = {tuple(row[key] for key in keys): _plain(row) for row in rows}
    return found


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The values as both databases give them."""
    return {str(name): value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for name, value in row.items()}


def at_schema(revision: str, database: str, folder: Path) -> Store:
    """That schema's rows in a database of today."""
    if database.startswith("sqlite"):
        shutil.copyfile(filled(revision), folder / "opmon.db")
        return open_store(database)
    store = connect(database)
    restore(filled(revision), store)
    return store


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_is_lost_on_the_way_from(revision: str, empty_database: str, tmp_path: Path) -> None:
    before = dict(before_of(revision))
    store = at_schema(revision, empty_database, tmp_path)
    assert schema_of(store) == HEAD
    assert list(examining.problems(store)) == []
    after = contents(store)
    del before["leases"], after["leases"]  # nobody holds one after a restore
    assert all(before.values()), "every table had rows"
    for name, rows in before.items():
        assert rows.keys() == after[name].keys(), name
        for key, row in rows.items():
            same = row.keys() & after[name][key].keys() - CHANGES.get(name, set())
            assert {column: row[column] for column in same} == {column: after[name][key][column] for column in same}
