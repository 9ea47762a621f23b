"""Documents with infinity in them, such as the bounds of an interval that has no end."""

from __future__ import annotations

import json
import math

import sqlalchemy as sa

from opmon.store._documents import as_json
from opmon.store.engine import open_store

NO_END = {"low": 0.5, "high": math.inf, "words": ["Infinity", "1e999"], "deep": [{"low": -math.inf, "left": (1, None)}]}


def test_infinity_is_read_as_it_was_written() -> None:
    text = as_json(NO_END)
    assert "Infinity," not in text
    assert json.loads(text) == {**NO_END, "deep": [{"low": -math.inf, "left": [1, None]}]}
    assert as_json({"value": math.nan}) == '{"value": null}'
    assert as_json({"value": 0.5}) == json.dumps({"value": 0.5})


def test_a_database_keeps_bounds_that_have_no_end(database: str) -> None:
    kept = sa.Table("kept", sa.MetaData(), sa.Column("document", sa.JSON(none_as_null=True)))
    store = open_store(database)
    with store.engine.begin() as connection:
        kept.create(connection)
        connection.execute(kept.insert().values(document=NO_END))
        read = connection.scalar(sa.select(kept.c.document))
        low = connection.scalar(sa.select(kept.c.document["low"].as_float()))
        kept.drop(connection)
    assert read["high"] == math.inf
    assert read["deep"][0]["low"] == -math.inf
    assert (read["words"], low) == (NO_END["words"], 0.5)
