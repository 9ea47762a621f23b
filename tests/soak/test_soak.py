"""Workers are killed and stopped for two minutes, and no round is lost or doubled; the long form is a benchmark."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.benchmarks.soak import arguments_of, soak
from tests.databases import postgres_server


@pytest.mark.timeout(400)
def test_no_round_is_lost_or_doubled_while_workers_die_and_stand_still(tmp_path: Path) -> None:
    short = ["--monitors", "20", "--minutes", "1.5", "--kill-every", "30", "--stop-every", "20", "--stop-for", "60"]
    folder = Path(tempfile.mkdtemp(prefix="opmon-postgres-"))  # none of pytest's: the server is another user's
    with postgres_server(folder) as server:
        found = soak(arguments_of([*short, "--inputs-every", "30"]), tmp_path, server.new())
    print(found)
    wrong = ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open", "gaps_in_numbers")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["inputs_in_rounds"] == found["inputs_written"] > 0
    assert (found["kills"], found["stops"]) == (2, 1)
    assert found["connections"] <= 20  # type: ignore[operator]
    assert found["exit_codes"] == [0, 0]
    begins = found["start_seconds"]  # one is killed while the other stands still: nobody works until it is there again
    assert found["longest_wait_seconds"] <= 40 + begins, "no period was missed by more than three"  # type: ignore[operator]
