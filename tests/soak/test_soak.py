"""Workers are killed and stopped for two minutes, and no round is lost or doubled; the long form is a benchmark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.soak import arguments_of, soak
from tests.databases import postgres_server

SHORT = ["--monitors", "20", "--minutes", "3", "--kill-every", "50", "--stop-every", "30", "--stop-for", "120"]


def soaked(folder: Path) -> dict[str, Any]:
    """A soak of three minutes, in which nothing may be lost or doubled, however busy the machine is."""
    folder.mkdir()
    own = Path(tempfile.mkdtemp(prefix="opmon-postgres-"))  # none of pytest's: the server is another user's
    with postgres_server(own) as server:
        found: dict[str, Any] = soak(arguments_of([*SHORT, "--inputs-every", "30"]), folder, server.new())
    print(found)
    wrong = ("rounds_lost", "rounds_doubled", "slices_doubled", "rounds_open", "gaps_in_numbers")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0), found
    assert found["inputs_in_rounds"] == found["inputs_written"] > 0, found
    assert (found["kills"], found["stops"]) == (3, 1), found
    assert found["connections"] <= 20, found
    assert found["exit_codes"] == [0, 0], found
    return found


@pytest.mark.timeout(1200)
def test_no_round_is_lost_or_doubled_while_workers_die_and_stand_still(tmp_path: Path) -> None:
    """Waits are of the machine as well: a long one is measured once more."""
    for number in range(2):
        found = soaked(tmp_path / f"{number}")
        begins = found["start_seconds"]  # one is killed while the other stands still: nobody works until it is back
        if found["longest_wait_seconds"] <= 40 + begins:
            return
    raise AssertionError(f"a period was missed by more than three: {found}")
