"""Workers are killed and stopped for two minutes, and no round is lost or doubled; the long form is a benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.soak import arguments_of, soak
from tests.databases import postgres_server


@pytest.mark.timeout(400)
def test_no_round_is_lost_or_doubled_while_workers_die_and_stand_still(tmp_path: Path) -> None:
    short = ["--monitors", "20", "--minutes", "1.5", "--kill-every", "30", "--stop-every", "15", "--stop-for", "45"]
    with postgres_server(tmp_path / "postgres") as server:
        (tmp_path / "opmon").mkdir()
        found = soak(arguments_of([*short, "--inputs-every", "30"]), tmp_path / "opmon", server.new())
    print(found)
    wrong = ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open", "gaps_in_numbers")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["inputs_in_rounds"] == found["inputs_written"] > 0
    assert (found["kills"], found["stops"]) == (2, 1)
    assert found["connections"] <= 20  # type: ignore[operator]
    assert found["exit_codes"] == [0, 0]
    assert found["longest_wait_seconds"] <= 40, "no period was missed by more than three"  # type: ignore[operator]
