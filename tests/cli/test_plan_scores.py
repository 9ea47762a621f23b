"""Plans for measures whose values are not only 0 and 1: by how much they differ, not as if they were shares."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from opmon.cli.plan import plan
from opmon.store import queue, revisions
from opmon.types import Label
from tests.outputs import judged, write_answers


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments))


def say(workbench: Any, monitor: Any, of: dict[str, str]) -> None:
    with monitor.store.read() as connection:
        tasks = queue.open_tasks(connection, workbench.name)
    with monitor.store.write() as connection:
        given = [Label(task.id, "ann", of[task.input_id], monitor.clock()) for task in tasks]
        queue.record(connection, given, monitor.clock())


def newest(workbench: Any, monitor: Any) -> Any:
    with monitor.store.read() as connection:
        return revisions.newest_final(connection, workbench.name).estimate


def test_a_mean_score_is_planned_by_how_much_its_scores_differ(workbench: Any, tmp_path: Path) -> None:
    good = write_answers(workbench.folder / "answers")
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    changes = judged(workbench, labels={"scale": "score"}, rules=[])
    config = str(workbench.write_yaml(database, **changes))
    asked = ("-c", config, "--inputs", "20000", "--half-width", "0.03")
    worst = json.loads(ask(*asked, "--accuracy", "0.8", "--json").output)
    assert any("0 or 1" in note for note in worst["notes"]), "nothing is known of the scores yet"
    monitor = workbench.monitor(database, **changes)
    assert monitor.advance().problems == []
    scores = {key: 0.7 + 0.2 * fine + (0.05 if k % 2 else 0.0) for k, (key, fine) in enumerate(good.items())}
    say(workbench, monitor, {key: f"{score:.2f}" for key, score in scores.items()})
    assert monitor.advance().problems == []
    assert newest(workbench, monitor).quantity.name == "mean score"
    told = json.loads(ask(*asked, "--json").output)
    mean = sum(scores.values()) / len(scores)
    spread = math.sqrt(sum((each - mean) ** 2 for each in scores.values()) / len(scores))
    normal = (1.96 * spread / 0.03) ** 2
    assert 0.8 * normal < told["plain_budget"] < 1.6 * normal, "intervals of few skewed scores are a little wider"
    assert told["plain_budget"] == told["budget"], "they were drawn at random"
    assert told["budget"] < worst["budget"] / 5
    assert not [note for note in told["notes"] if "0 or 1" in note]
    assert told["gain"] is None, "nothing was drawn adaptively"
