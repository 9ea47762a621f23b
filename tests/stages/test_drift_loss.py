"""A round says what drifted, whether the model became worse with it, and in which slices."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opmon.cli import group
from opmon.queries.drifting import round_drift
from opmon.store import revisions, rounds
from opmon.types.drifting import RoundDrift

SIZE = 300
PLAN = {
    "round": {"min_inputs": SIZE, "max_inputs": SIZE, "max_age": "3650d"},
    "sampler": {"type": "srs", "budget": 150},
    "drift": {"enabled": True, "page": False},
    "slices": ["country"],
}


def logged(number: int, shift: float = 0.0) -> dict[str, object]:
    """Who asked: those of DE get older by ``shift`` years."""
    rng = np.random.default_rng(number)
    country = rng.choice(["DE", "FR"], SIZE)
    age = rng.normal(40, 10, SIZE) + np.where(country == "DE", shift, 0)
    return {"country": country.tolist(), "age": age.tolist()}


def lived(workbench: Any, monitor: Any, wrong_in: str | None = None, **columns: Any) -> None:
    """One more round; people say that the model is wrong of most inputs of a country."""
    path = workbench.write_window(SIZE, seed=1, **columns)
    if wrong_in is not None:
        window = path.stem.split("-")[1].lstrip("0")
        for row, country in enumerate(columns["country"]):
            if country == wrong_in and row % 3:
                truth = workbench.truth[f"w{window}-{row}"]
                workbench.truth[f"w{window}-{row}"] = str((int(truth) + 1) % 10)
    for _ in range(2):
        assert monitor.advance().problems == []
        workbench.answer(monitor)
    assert monitor.advance().problems == []


def told(monitor: Any, number: int) -> RoundDrift | None:
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, monitor.settings.name, number)
        return round_drift(connection, round_, revisions.latest_estimate(connection, round_.id))


def test_drift_with_loss_in_a_slice_and_without(workbench: Any, database: str) -> None:
    monitor = workbench.monitor(database, **PLAN)
    lived(workbench, monitor, **logged(1))
    assert told(monitor, 1) is None, "there is nothing to compare the first round with"
    lived(workbench, monitor, **logged(2))
    lived(workbench, monitor, **logged(3, shift=15))
    lived(workbench, monitor, wrong_in="DE", **logged(4, shift=15))

    without, with_loss = told(monitor, 3), told(monitor, 4)
    assert without is not None
    assert with_loss is not None
    assert {part.part: part.drifted for part in without.parts}["inputs"] == ("age",)
    assert without.loss == "none seen"
    assert without.against == (1, 2), "those that did not drift"
    assert with_loss.against == (1, 2)
    assert with_loss.loss == "loss"
    assert with_loss.worse_by is not None
    assert with_loss.low is not None
    assert with_loss.worse_by > with_loss.low > 0
    assert with_loss.slices[0].name == "country DE"
    assert with_loss.slices[0].drifted == ("age",), "inside of FR nothing moved"
    assert (with_loss.slices[0].worse_at_least or 0) > 0
    assert not any(each.name == "country FR" for each in with_loss.slices)
    assert any("The drift came with a loss: accuracy is" in sentence for sentence in with_loss.words)
    assert any("No loss is seen with it" in sentence for sentence in without.words)

    path = workbench.write_yaml(database, **PLAN)
    shown = CliRunner().invoke(group, ["rounds", "show", "4", "-c", str(path)])
    assert "The drift came with a loss" in " ".join(shown.output.split())
    as_json = json.loads(CliRunner().invoke(group, ["status", "-c", str(path), "--json"]).output)
    assert as_json["latest"]["drift"]["slices"][0]["name"] == "country DE"
    with monitor.store.read() as connection:
        run = rounds.get(connection, monitor.settings.name, 4).run_id
    kept = monitor.registry.download(run, "drift.json", workbench.folder / "kept")
    assert json.loads(kept.read_text())["loss"] == "loss"
    assert (
        "The drift came with a loss"
        in (monitor.registry.download(run, "round.html", workbench.folder / "kept")).read_text()
    )


@pytest.mark.parametrize("enabled", [True, False])
def test_classes_are_kept_with_the_drift_alone(workbench: Any, database: str, enabled: bool) -> None:
    monitor = workbench.monitor(database, **PLAN | {"drift": {"enabled": enabled, "page": False}, "slices": []})
    lived(workbench, monitor, **logged(1))
    with monitor.store.read() as connection:
        kept = rounds.get(connection, monitor.settings.name, 1).drift
    if not enabled:
        assert kept is None
        return
    assert sum(kept["classes"].values()) == pytest.approx(1)
    assert all(low <= value <= high for value, low, high, _ in kept["by_class"].values())
