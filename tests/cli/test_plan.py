from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from opmon.cli.plan import plan
from tests.made_once import new_opmon_database


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(plan, list(arguments))


def test_without_a_configuration() -> None:
    found = json.loads(ask("--inputs", "20000", "--accuracy", "0.9", "--half-width", "0.05", "--json").output)
    assert found["hopeful_budget"] < found["plain_budget"] < found["budget"]
    assert found["half_width"] <= 0.05
    assert found["sampler"]["budget"] == found["budget"]


def test_the_aim_costs_labels() -> None:
    asked = ("--inputs", "20000", "--accuracy", "0.9", "--json")
    found = [json.loads(ask(*asked, "--aim", aim).output) for aim in ("0", "0.5", "1")]
    assert [each["sampler"]["aim"] for each in found] == [0, 0.5, 1]
    assert found[0]["budget"] < found[1]["budget"] < found[2]["budget"] / 2
    assert json.loads(ask(*asked).output)["budget"] == found[1]["budget"]
    shown = ask("--inputs", "20000", "--accuracy", "0.9").output
    assert f"{found[1]['hopeful_budget']:,} are enough if the variables foretell failures" in shown


def test_the_monitors_own_aim_is_planned_for(workbench: Any, tmp_path: Path) -> None:
    sampler = {"type": "adaptive", "budget": 100, "aim": 1.0}
    config = str(workbench.write_yaml(new_opmon_database(tmp_path / "opmon.db"), sampler=sampler))
    asked = ("-c", config, "--inputs", "20000", "--accuracy", "0.9", "--json")
    own, other = (json.loads(ask(*asked, *more).output) for more in ((), ("--aim", "0.5")))
    assert (own["aim"], other["aim"]) == (1.0, 0.5)
    assert own["budget"] > 2 * other["budget"]


def test_a_narrower_interval_costs_more() -> None:
    budgets = [
        json.loads(ask("--inputs", "20000", "--accuracy", "0.9", "--half-width", width, "--json").output)["budget"]
        for width in ("0.08", "0.04", "0.02")
    ]
    assert budgets == sorted(set(budgets))


def test_the_newest_round_tells_what_is_not_said(workbench: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = str(workbench.write_yaml(database))
    assert "--inputs" in ask("-c", config).output, "nothing was scored yet"
    monitor = workbench.monitor(database)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor)
    monitor.advance()
    found = json.loads(ask("-c", config, "--json").output)
    assert found["inputs"] == 200
    assert 0.5 < found["accuracy"] <= 1
    assert "labels" in ask("-c", config).output
    assert found["gain"] is None, "drawn at random: nothing was learned of the adaptive sampler"


def test_the_monitors_own_variables_are_advised(workbench: Any, tmp_path: Path) -> None:
    config = str(workbench.write_yaml(new_opmon_database(tmp_path / "opmon.db"), variables=["dsa", "lsa"]))
    found = json.loads(ask("-c", config, "--inputs", "20000", "--accuracy", "0.9", "--json").output)
    assert any("all 6 variables" in reason for reason in found["reasons"])


def test_a_share_of_all_inputs_is_planned_before_the_first_round(workbench: Any, tmp_path: Path) -> None:
    changes = {"problem": "regression", "unit": "days", "main": "within_tolerance", "rules": [],
               "sampler": {"type": "srs", "budget": 40},
               "measures": [{"within_tolerance": {"tolerance": 2}}, "bias"]}  # fmt: skip
    config = str(workbench.write_yaml(new_opmon_database(tmp_path / "opmon.db"), **changes))
    told = json.loads(ask("-c", config, "--inputs", "20000", "--accuracy", "0.9", "--json").output)
    alike = json.loads(ask("--inputs", "20000", "--accuracy", "0.9", "--half-width", "0.05", "--json").output)
    assert told["quantity"] == "share within 2 days"
    assert told["plain_budget"] == alike["plain_budget"]
    rare = {"classes": ["a", "b"], "measures": [{"recall": {"class": "a"}}], "main": "recall", "rules": []}
    config = str(workbench.write_yaml(new_opmon_database(tmp_path / "opmon.db"), **rare))
    refused = ask("-c", config, "--inputs", "20000", "--accuracy", "0.9", "--half-width", "0.05")
    assert "depend on how rare its inputs are" in str(refused.exception)


def test_what_cannot_be_is_said() -> None:
    assert "half-width" in str(ask("--inputs", "100", "--half-width", "-1").exception)
    assert "accuracy" in str(ask("--inputs", "100", "--accuracy", "93").exception)
