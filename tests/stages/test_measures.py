"""A monitor of several measures, one of them main: what is estimated, kept and told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opmon.cli import group
from opmon.store import revisions, rounds

CHANGES: dict[str, Any] = {
    "classes": [str(digit) for digit in range(10)],
    "measures": ["accuracy", {"recall": {"class": "8"}}, {"precision": {"class": "8"}}, {"f1": {"average": "macro"}}],
    "main": "recall",
    "rules": [],
    "sampler": {"type": "srs", "budget": 100},
}


def asked(*arguments: str) -> str:
    return CliRunner().invoke(group, list(arguments), standalone_mode=False, catch_exceptions=False).output


def one_round(workbench: Any, database: str, **changes: Any) -> Any:
    """A monitor with one labelled round."""
    monitor = workbench.monitor(database, **changes)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.2)
    assert (cycle := monitor.advance()).problems == []
    assert cycle.closed == 1
    return monitor


def test_the_main_measure_is_the_estimate_and_the_others_stand_beside_it(
    workbench: Any, database: str, tmp_path: Path
) -> None:
    config = str(workbench.write_yaml(database, **CHANGES))
    monitor = one_round(workbench, database, **CHANGES)
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
        revision = revisions.latest_estimate(connection, round_.id)
    assert revision is not None
    assert revision.estimate.quantity.name == "recall[8]"
    assert revision.estimate.low < revision.estimate.value < revision.estimate.high
    by_name = {each.quantity.name: each for each in revision.further}
    assert [*by_name] == ["accuracy", "precision[8]", "macro F1"]
    accuracy = by_name["accuracy"].estimate
    assert accuracy is not None
    assert accuracy.value == 1 - revision.failures / 100

    metrics = monitor.registry._client.get_run(round_.timeline_run_id).data.metrics
    assert metrics["recall_8/estimate"] == revision.estimate.value
    assert metrics["measure/accuracy"] == accuracy.value
    assert {"measure/macro_F1", "measure/macro_F1_low", "measure/precision_8_high"} <= set(metrics)
    assert "accuracy/estimate" not in metrics
    tags = monitor.registry.version_tags(monitor.registry.resolve(workbench.model))
    assert float(tags["opmon.recall_8"]) == pytest.approx(revision.estimate.value, abs=1e-4)

    page = monitor.registry.download(round_.run_id, "round.html", tmp_path / "got").read_text()
    assert "Estimated <bdi>recall[8]</bdi>" in page
    assert "macro F1" in page
    kept = json.loads(monitor.registry.download(round_.run_id, "measures.json", tmp_path / "got").read_text())
    assert [each["quantity"] for each in kept] == [*by_name]

    told = asked("status", "-c", config)
    assert f"recall[8] {revision.estimate.quantity.interval(*_bounds(revision.estimate))}" in told
    assert f"accuracy      {accuracy.quantity.interval(*_bounds(accuracy))}" in told
    latest = json.loads(asked("status", "-c", config, "--json"))["latest"]
    assert latest["measures"][0]["estimate"]["value"] == accuracy.value
    shown = asked("rounds", "show", "1", "-c", config)
    assert "recall[8]" in shown
    assert "precision[8]" in shown


def _bounds(estimate: Any) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high
