"""``opmon init`` names columns that may divide the inputs, as a comment."""

from __future__ import annotations

import pyarrow as pa

from opmon.setup.choice import Choice
from opmon.setup.log import Log
from opmon.setup.slices import dividing


def test_columns_of_few_words_are_named() -> None:
    rows = pa.table(
        {
            "country": ["DE", "FR", "US", "DE"],
            "premium": [True, False, True, True],
            "prediction": ["a", "b", "a", "b"],
            "version": ["v1", "v2", "v1", "v1"],
            "age": [1, 2, 3, 4],
            "same": ["x"] * 4,
            "two words": ["x", "y", "x", "y"],
            "two\nlines": ["x", "y", "x", "y"],
        }
    )
    said = dividing(Log(rows, 4), [Choice(("columns", "model_version"), "version")])
    assert said.startswith("    # slices: [country, premium] ")
    assert dividing(Log(rows.select(["age"]), 4), []) == ""
