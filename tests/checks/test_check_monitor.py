"""What ``opmon check`` says of a monitor is what ``opmon run`` then does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opmon.checks import Finding, check_monitor
from opmon.config import Settings
from tests.conftest import Workbench, point_mlflow_at
from tests.tabular import NAMES, tabular

LIMITS = {"min_inputs": 200, "max_inputs": 200, "max_age": "3650d"}


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory, mlflow_uri: str) -> Any:
    """A registered model that answers inputs with gaps, and a log with many columns beside its inputs."""
    point_mlflow_at(mlflow_uri)
    bench = Workbench(tmp_path_factory.mktemp("loans"), mlflow_uri, "loans", "")
    fitted, _, log = tabular(bench, gaps=True)
    said = fitted.predict(log.select(NAMES).to_pandas().to_numpy())
    rng = np.random.default_rng(0)
    version = bench.model.rpartition("/")[2]  # another test may have registered the model before
    columns = {
        "said": said,
        "numbers": (said == "default").astype(int),
        "shout": np.char.upper(said.astype(str)),
        "scores": rng.random(200),
        "swapped": np.where(said == "paid", "default", "paid"),
        "shuffled": rng.permutation(said),
        "stray": ["ERROR", *said[1:]],
        "strays": ["ERROR", "timeout", *said[2:]],
        "served": [f"v{version}"] * 200,
        "other": ["sha256:e3"] * 100 + [version] * 100,
        "no_id": [None, *map(str, range(199))],
        "empty": pa.nulls(200, pa.float32()),
    }
    for name, values in columns.items():
        log = log.append_column(name, pa.array(values))
    pq.write_table(log, bench.folder / "production" / "log.parquet")
    return bench


def columns(**named: str) -> dict[str, Any]:
    return {"columns": {"id": "input_id", **named}}


REFUSE = {"inputs": {"missing": {"refuse": True}}}
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "right": (columns(prediction="said", model_version="served"), "ok", "the same on 100 %"),
    "gaps": ({}, "ok", "the model answered 200 of 200 inputs; values are missing in age (5); income (5); amount (5)"),
    "few unscorable": (REFUSE, "warning", "15 cannot be scored (7.5 %; a round stops above 10 %): column"),
    "many": (REFUSE | {"round": LIMITS | {"max_unscorable": 0.05}}, "problem", "15 of 200 inputs cannot be scored"),
    "numbers": (columns(prediction="numbers"), "problem", "the model's classes are default, paid"),
    "upper case": (columns(prediction="shout"), "problem", "Upper and lower case count"),
    "scores": (columns(prediction="scores"), "problem", "They look like probabilities"),
    "swapped": (columns(prediction="swapped"), "problem", "round.max_skew is 0.3"),
    "one stray": (columns(prediction="stray"), "warning", "holds 'ERROR', which is none of the model's classes (1)"),
    "two strays": (columns(prediction="strays"), "problem", "ERROR (1), timeout (1), 2 of 200"),
    "versions": (
        columns(model_version="other") | {"round": LIMITS | {"min_inputs": 100}},
        "problem",
        "names 'sha256:e3', and the registry has no such version",
    ),
    "ids": ({"columns": {"id": "no_id"}}, "problem", "1 of 200 inputs have no 'no_id'"),
    "no ids": ({"columns": {"id": "said"}}, "warning", "has 2 different ids in 200 inputs, and the others count as"),
    "likelihoods": (
        columns(inclusion="numbers"),
        "problem",
        "with which probability a row was logged: above 0, at most",
    ),
    "no opinion": (
        {"estimate": {"proxy": {"column": "opinion", "says": "answer"}}},
        "problem",
        "columns that are not there (estimate.proxy: opinion); there are: ",
    ),
    "times": (columns(timestamp="shout"), "problem", "does not hold times"),
    "class": (
        {"measures": ["accuracy", {"recall": {"class": "Paid"}}], "main": "recall"},
        "problem",
        "there is no class 'Paid'",
    ),
    "renamed": (
        {"inputs": {"features": ["age", "empty", "amount"]}},
        "problem",
        "the model takes 'empty', which holds",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_check_says_is_what_run_does(loans: Any, tmp_path: Path, case: str) -> None:
    changes, level, words = CASES[case]
    given = {"round": LIMITS, "inputs": {}, **columns(), "sampler": {"type": "srs", "budget": 20}, **changes}
    settings = Settings.from_mapping(loans.configuration(f"sqlite:///{tmp_path / 'opmon.db'}", **given), loans.folder)
    found = list(check_monitor(settings, "loans"))
    worst = next((one for one in found if one.level == "problem"), found[-1])
    assert (worst.level, words in worst.message) == (level, True), worst.message
    assert worst.needs_change == (level == "problem")
    problems = loans.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", **given).advance().problems
    assert bool(problems) == (level == "problem"), problems


def test_predictions_of_other_inputs_are_told(loans: Any, tmp_path: Path) -> None:
    given = {"inputs": {}, **columns(prediction="shuffled"), "round": LIMITS | {"max_skew": 0.9}}
    (trial,) = said(loans, tmp_path, given, "trial")
    assert trial.level == "warning"
    assert "no more alike than chance would make them" in trial.message


def test_inputs_are_shown_as_opmon_sees_them(loans: Any, tmp_path: Path) -> None:
    given = {"inputs": {}, **columns(prediction="swapped"), "round": LIMITS | {"max_skew": 1.0}}
    (trial,) = said(loans, tmp_path, given, "trial")
    head, *rows = trial.rows
    assert head[:3] == ("id", "judged", "the model says")
    assert [row[0] for row in rows] == ["r0", "r1", "r2", "r3", "r4"]
    assert all({row[1], row[2]} == {"default", "paid"} for row in rows)


def said(bench: Any, tmp_path: Path, given: dict[str, Any], about: str) -> list[Finding]:
    settings = Settings.from_mapping(bench.configuration(f"sqlite:///{tmp_path / 'opmon.db'}", **given), bench.folder)
    return [one for one in check_monitor(settings, bench.name) if one.about.endswith(about)]


def test_check_looks_for_inputs_as_far_as_a_condition_leaves_them_out(workbench: Any, tmp_path: Path) -> None:
    for country in ("FR", "FR", "DE"):
        workbench.write_window(size=600, country=[country] * 600)
    given = {"inputs": {"tensor": "pixels", "where": "country == 'DE'"}}
    (source,), (trial,) = (said(workbench, tmp_path, given, about) for about in ("source", "trial"))
    assert (source.level, "600 of the first 1,800 rows fit inputs.where" in source.message) == ("ok", True), source
    assert "opmon run would go on" in trial.message


def test_check_begins_where_the_monitor_does(workbench: Any, tmp_path: Path) -> None:
    workbench.write_window()
    given = {"source": {"path": "production", "since": "2999-01-01"}}
    (source,) = said(workbench, tmp_path, given, "source")
    assert "nothing new is there, so what was there before it begins (since) is tried" in source.message


def test_check_tries_what_the_next_run_would_take(workbench: Any, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    named = {"classes": ["c" + str(number) for number in range(10)]}
    right = columns(prediction="said") | named | {"round": LIMITS | {"max_skew": 1.0}}
    workbench.write_window(said=["c4"] * 200)
    assert workbench.monitor(database, **right).advance().problems == []
    (source,), (trial,) = (said(workbench, tmp_path, right, about) for about in ("source", "trial"))
    assert "nothing new is there" in source.message
    assert trial.level == "warning", "it always says c4"
    workbench.write_window(said=["4"] * 200)
    (trial,) = said(workbench, tmp_path, right, "trial")
    assert "4 (200), 200 of 200" in trial.message
    assert len(workbench.monitor(database, **right).advance().problems) == 1
    mended = columns() | named | {"round": LIMITS}
    (rounds,), (source,), (trial,) = (
        said(workbench, tmp_path, mended, about) for about in ("rounds", "source", "trial")
    )
    assert "these are tried again: round 2: column 'said' holds predictions" in rounds.message
    assert "round 2 waits for them" in source.message
    assert trial.level == "ok"
    assert workbench.monitor(database, **mended).advance().problems == []


JUDGE = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"key": json.loads(line)["key"], "answer": "SAID"}))
"""


@pytest.mark.parametrize(
    ("said", "level", "told"),
    [("7", "ok", "command answered 5 of 5 inputs"), ("seven", "problem", "command answered 0 of 5 inputs")],
)
def test_the_judge_is_tried_on_five_inputs(workbench, sqlite, said, level, told) -> None:
    workbench.write_window()
    script = workbench.folder / "judge.py"
    script.write_text(JUDGE.replace("SAID", said))
    judge = {"type": "command", "command": [sys.executable, str(script)]}
    changes = {"judge": judge, "sampler": {"type": "srs", "budget": 40}}
    settings = Settings.from_mapping(workbench.configuration(sqlite, **changes), workbench.folder)
    (found,) = [each for each in check_monitor(settings, workbench.name) if each.about.endswith(": judge")]
    assert (found.level, told in found.message) == (level, True)


def test_a_judge_that_cannot_be_had_is_told_with_what_follows(workbench, sqlite) -> None:
    workbench.write_window()
    changes = {"judge": {"type": "command", "command": ["/nowhere"]}, "sampler": {"type": "srs", "budget": 40}}
    settings = Settings.from_mapping(workbench.configuration(sqlite, **changes), workbench.folder)
    (found,) = [each for each in check_monitor(settings, workbench.name) if each.about.endswith(": judge")]
    assert found.level == "problem"
    assert "cannot be started" in found.message
    assert "A round waits 1h for it, and then goes on without" in found.message


def test_classes_that_the_model_does_not_have_are_told(loans: Any, tmp_path: Path) -> None:
    """Of each measure, and of slices by the predicted class."""
    wrong = {"cost": {"matrix": {"paid": {"Default": 1}, "default": {"paid": 1}}}}
    given = {"inputs": {}, "measures": ["accuracy", wrong], "slices": [{"prediction": {"values": ["defualt"]}}]}
    (measure,), (slices,) = (said(loans, tmp_path, given, about) for about in ("measures", "slices"))
    assert measure.message.startswith("cost: there is no class 'Default'; the classes are: default, paid.")
    assert slices.message.startswith("prediction: there is no class 'defualt' (did you mean 'default'?)")
