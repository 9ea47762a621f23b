"""``opmon check`` says what columns would divide the inputs into, and which cannot."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from opmon.checks.sample import Sample
from opmon.checks.slices import look_at_slices
from opmon.config import Settings

ROWS = pa.table(
    {
        "country": ["DE"] * 600 + ["FR"] * 300 + ["Österreich"] * 60 + [None] * 40,
        "age": [str(age % 90) for age in range(990)] + ["unknown"] * 10,
        "premium": [k % 4 == 0 for k in range(1000)],
        "visitor": [f"v{k}" for k in range(1000)],
        "joined": [dt.date(2026, 1, 1 + k % 28) for k in range(1000)],
        "tags": [["a"]] * 1000,
    }
)


@pytest.mark.parametrize(
    ("slices", "level", "says"),
    [
        ("country", "ok", "country: DE 60 %, FR 30 %, Österreich 6 %, missing 4 %, of the first 1,000 inputs"),
        ({"age": [30, 60]}, "ok", "age: below 30 33 %, 30-60 33 %, 60 and more 33 %, missing 1 %"),
        ("premium", "ok", "premium: false 75 %, true 25 %"),
        ({"premium": [True]}, "ok", "premium: true 25 %, other 75 %"),
        ("joined", "ok", "joined: 2026-01-01 4 %, 2026-01-02 4 %"),
        ({"joined": [1, 2]}, "warning", "no input has a value of joined; edges cut numbers, and it holds date32[day]"),
        (
            "visitor",
            "warning",
            "visitor has 1,000 different values in 1,000 inputs, none of them 1 % of these: all are",
        ),
        ({"country": ["XK"]}, "warning", "none of its values is there; the log's most frequent ones: DE, FR"),
        ("contry", "problem", "the log has no column 'contry' (did you mean 'country'?); there are: country, age"),
        ("tags", "problem", "'tags' holds list"),
    ],
)
def test_what_is_said_of_a_column(slices: object, level: str, says: str) -> None:
    one = {
        "model": "models:/m@champion",
        "inputs": {"features": ["x"]},
        "source": {"path": "log"},
        "sampler": {"type": "srs", "budget": 100},
        "slices": [slices],
    }
    monitor = Settings.from_mapping({"monitors": {"m": one}}, Path("/nowhere")).monitor("m")
    (finding,) = look_at_slices(monitor, Sample(ROWS))
    assert (finding.level, finding.needs_change) == (level, level == "problem")
    assert says in finding.message
