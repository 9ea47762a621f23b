"""The command line as users run it: in a process of its own where that matters, with real databases and MLflow."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from opmon.cli import COMMANDS, HELD, LATER, WRONG, group, main
from opmon.store import rounds
from opmon.store.leases import hold
from tests.outputs import judged, write_answers
from tests.patience import LONGEST, until


def opmon(*arguments: str) -> tuple[int, str, str]:
    """What ``opmon`` prints and how it ends, errors and all."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def config(workbench: Any, tmp_path: Path) -> str:
    return str(workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}"))


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        result: Result = CliRunner().invoke(group, [name, "--help"])
        assert result.exit_code == 0, name
        assert "Usage:" in result.output


def test_help_is_quick() -> None:
    """A fifth of what importing everything would take; the wall-clock bar has its benchmark."""
    code = "import sys; from opmon.cli import main; sys.argv[1:] = ['--help']\ntry: main()\nexcept SystemExit: pass\n"
    heavy = "print([m for m in ('mlflow','sqlalchemy','pandas','numpy','evidently','onnxruntime') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_a_cycle_and_a_plan_need_no_scipy_stats() -> None:
    """Importing it takes 0.4 s at each start."""
    code = "import sys, opmon.monitor, opmon.cli.plan, opmon.robustness; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_terminal_that_lacks_a_sign_ends_no_command() -> None:
    """And what programs read is UTF-8 all the same."""

    def told(spoken: str, *arguments: str) -> bytes:
        code = f"from opmon.cli import main; main({list(arguments)!r})"
        env = {**os.environ, "PYTHONIOENCODING": spoken}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=env).stdout

    assert b"interval of ? 3 points" in told("ascii", "plan", "--inputs", "5000")
    assert "x ? x + c·sd·?" in told("latin-1", "explain", "table.noise").decode("latin-1")
    assert "x ← x + c·sd·ε" in json.loads(told("latin-1", "explain", "table.noise", "--json").decode())["text"]


def test_an_unknown_command_gets_the_nearest_name() -> None:
    code, _, err = opmon("statsu")
    assert code == WRONG
    assert "status" in err


def test_init_writes_a_file_that_loads_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    assert opmon("init", str(path))[0] == 0
    code, _, err = opmon("init", str(path))
    assert code == WRONG
    assert "--force" in err
    assert opmon("status", "-c", str(path))[0] == 0


def test_a_missing_configuration_names_the_next_step(tmp_path: Path) -> None:
    code, _, err = opmon("run", "-c", str(tmp_path / "nothing.yaml"))
    assert code == WRONG
    assert "opmon init" in err
    assert "Traceback" not in err


def test_a_cycle_by_hand(workbench: Any, config: str, tmp_path: Path) -> None:
    workbench.write_window()
    code, out, _ = opmon("run", "-c", config, "--json")
    assert code == 0
    assert json.loads(out)["waiting"] == 1

    tasks = tmp_path / "tasks.csv"
    assert opmon("labels", "export", "-c", config, "-o", str(tasks))[0] == 0
    with tasks.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert "prediction" not in rows[0]
    for row in rows:
        row["label"] = workbench.truth[row["input_id"]]
    rows[0]["label"], rows[0]["skip"] = "", "yes"
    with tasks.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)

    code, out, _ = opmon("labels", "import", "-c", config, str(tasks), "--annotator", "ann", "--json")
    assert code == 0
    assert json.loads(out) == {"new": len(rows), "unchanged": 0, "unanswered": 0}
    assert (
        json.loads(opmon("labels", "import", "-c", config, str(tasks), "--annotator", "ann", "--json")[1])["new"] == 0
    )

    assert json.loads(opmon("run", "-c", config, "--json")[1])["closed"] == 1
    status = json.loads(opmon("status", "-c", config, "--json")[1])
    estimate = status["latest"]["estimate"]
    assert (estimate["quantity"], estimate["unit"]) == ("accuracy", "")
    assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert (status["queue"]["open"], status["queue"]["spoken"]) == (0, len(rows))
    assert status["last_success_at"] is not None
    assert workbench.name[:20] in opmon("status", "-c", config)[1]


def test_a_bad_label_file_changes_nothing(workbench: Any, config: str, tmp_path: Path) -> None:
    workbench.write_window()
    opmon("run", "-c", config)
    file = tmp_path / "labels.jsonl"
    file.write_text('{"task_id": 1, "label": "3"}\n{"task_id": 1, "label": {"a": 1}}\n')
    code, _, err = opmon("labels", "import", "-c", config, str(file))
    assert code == WRONG
    assert "2" in err
    file.write_text('{"task_id": 1, "label": "3"}\n{"task_id": 4711, "input_id": "a", "label": "3"}\n')
    code, _, err = opmon("labels", "import", "-c", config, str(file))
    assert code == WRONG
    assert "line 1 names task 1 by its number alone" in err
    assert "no task 4711" in err
    file.write_text(json.dumps({"monitor": workbench.name, "input_id": "nobody", "label": "3"}) + "\n")
    assert opmon("labels", "import", "-c", config, str(file))[0] == WRONG
    assert json.loads(opmon("status", "-c", config, "--json")[1])["queue"]["spoken"] == 0


def test_status_knows_which_rounds_have_their_labels(workbench: Any, config: str) -> None:
    """Between the last label and the next run a round waits for nobody."""
    monitor = workbench.monitor(f"sqlite:///{Path(config).parent / 'opmon.db'}")

    def newest() -> tuple[Any, ...]:
        (row,) = json.loads(opmon("status", "-c", config, "--json")[1])["newest"]
        return row["state"], row["spoken"], row["waits_for"]

    workbench.write_window()
    assert json.loads(opmon("run", "-c", config, "--json")[1])["waiting"] == 1
    workbench.answer(monitor, limit=8)
    assert newest() == ("labelling", 8, "labels")
    assert "labelling 8/" in opmon("status", "-c", config)[1]
    workbench.answer(monitor)
    state, spoken, waits_for = newest()
    assert (state, waits_for) == ("labelling", "run")
    assert spoken > 8
    assert "labelled" in opmon("status", "-c", config)[1]
    with monitor.store.read() as connection:
        assert rounds.waiting(connection, workbench.name) == 0
    assert json.loads(opmon("run", "-c", config, "--json")[1])["waiting"] == 0
    assert newest() == ("closed", spoken, None)


def test_run_says_who_holds_the_lease(workbench: Any, config: str) -> None:
    monitor = workbench.monitor(f"sqlite:///{Path(config).parent / 'opmon.db'}")
    with hold(monitor.store, workbench.name):
        code, _, err = opmon("run", "-c", config)
    assert code == HELD
    assert "process" in err


def test_run_says_what_is_not_there_this_time(workbench: Any, tmp_path: Path) -> None:
    config = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", model="models:/nobody/1")
    workbench.write_window()
    code, _, err = opmon("run", "-c", str(config))
    assert code == LATER
    assert "nobody" in err
    code, out, _ = opmon("check", "-c", str(config))
    assert code == WRONG
    assert "nobody" in out


def test_check_is_content_with_what_is_right(workbench: Any, config: str) -> None:
    workbench.write_window()
    code, out, _ = opmon("check", "-c", config)
    assert code == 0, out
    assert "cpu" in out.lower()
    assert out.splitlines()[-1] == "ready: opmon run would go through"
    assert "w1-0" in out, "rows are shown as opmon sees them"


def test_check_is_not_ready_where_a_monitor_has_no_inputs_though_others_show_theirs_twice(
    workbench: Any, tmp_path: Path
) -> None:
    """Outputs that people judge are shown as annotators will see them, too, and that is no trial."""
    write_answers(workbench.folder / "answers")
    (workbench.folder / "nothing").mkdir(exist_ok=True)
    path = workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", **judged(workbench))
    given = yaml.safe_load(path.read_text())
    (monitor,) = given["monitors"].values()
    given["monitors"] = {"one": monitor, "other": {**monitor, "source": {"path": "nothing"}}}
    path.write_text(yaml.safe_dump(given))
    assert "\nready: " in opmon("check", "-c", str(path), "-m", "one")[1]
    assert "\nnot ready: there are no inputs yet" in opmon("check", "-c", str(path))[1]


def test_check_names_what_is_wrong(workbench: Any, tmp_path: Path) -> None:
    workbench.write_window()
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = workbench.write_yaml(database, columns={"id": "identity"})
    code, out, _ = opmon("check", "-c", str(config))
    assert code == WRONG
    assert "identity" in out
    assert "input_id" in out


def test_check_makes_no_tables_and_says_what_the_sampler_lacks(workbench: Any, tmp_path: Path) -> None:
    workbench.write_window()
    database = tmp_path / "opmon.db"
    config = workbench.write_yaml(f"sqlite:///{database}", sampler={"type": "ces", "budget": 40})
    code, out, _ = opmon("check", "-c", str(config))
    assert code == WRONG
    assert "no hidden layer" in out
    assert "the first run makes its tables" in out
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_a_fault_in_one_monitor_comes_after_the_others(workbench: Any, tmp_path: Path) -> None:
    import yaml

    plain = workbench.configuration(f"sqlite:///{tmp_path / 'opmon.db'}")
    monitors = plain["monitors"]
    monitors["another"] = dict(monitors[workbench.name])
    config = tmp_path / "opmon.yaml"
    config.write_text(yaml.safe_dump(plain))
    workbench.write_window()
    assert opmon("run", "-c", str(config))[0] == 0
    workbench.answer(workbench.monitor(plain["database"]))
    with sqlite3.connect(tmp_path / "opmon.db") as connection:  # a draw that no opmon wrote
        connection.execute("UPDATE rounds SET draw = ? WHERE monitor = ?", (b"PK rubbish", workbench.name))
    workbench.write_window()
    code, _, err = opmon("run", "-c", str(config), "--json")
    assert (code, "Traceback" in err, "pickle" in err) == (1, True, True)
    found = [json.loads(line) for line in opmon("status", "-c", str(config), "--json")[1].splitlines()]
    assert [entry["rounds"] for entry in found] == [2, 2]


def test_status_tells_what_each_round_leaves_out(workbench: Any, tmp_path: Path) -> None:
    inputs = {"tensor": "pixels", "where": "country == 'DE'"}
    labels = {"max_wait": "1s"}
    config = str(workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", inputs=inputs, labels=labels))
    workbench.write_window(country=["DE"] * 160 + ["FR"] * 40)
    assert opmon("run", "-c", config)[0] == 0
    assert "round 1, left out: 40 filtered" in opmon("status", "-c", config)[1]
    workbench.answer(workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}", inputs=inputs), limit=8)
    until(lambda: opmon("run", "-c", config) and "of the draws have an answer" in opmon("status", "-c", config)[1])


def test_events_are_listed_shown_and_replayed(workbench: Any, tmp_path: Path) -> None:
    rules = [{"type": "accuracy_below", "threshold": 0.999, "name": "floor", "certainty": "estimate"}]
    config = str(workbench.write_yaml(f"sqlite:///{tmp_path / 'opmon.db'}", rules=rules))
    assert "no events" in opmon("events", "list", "-c", config)[1]
    workbench.write_window()
    opmon("run", "-c", config)
    workbench.answer(workbench.monitor(f"sqlite:///{tmp_path / 'opmon.db'}"), wrong=0.5)
    assert json.loads(opmon("run", "-c", config, "--json")[1])["delivered"] == 1
    event = json.loads(opmon("events", "list", "-c", config, "--json")[1])
    assert event["type"] == "opmon.alarm"
    assert json.loads(opmon("events", "show", "-c", config, event["id"])[1])["id"] == event["id"]
    assert "nothing to send" in opmon("events", "replay", "-c", config, event["id"])[1]
    assert opmon("events", "show", "-c", config, "nothing")[0] == WRONG


def test_two_runs_at_once_double_nothing(workbench: Any, config: str) -> None:
    for _ in range(3):
        workbench.write_window()
    command = [sys.executable, "-m", "opmon", "run", "-c", config, "--json"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [(process.communicate()[0], process.returncode) for process in started]
    assert sorted(code for _, code in ended)[0] == 0
    assert {code for _, code in ended} <= {0, HELD}
    assert sum(json.loads(out).get("opened", 0) for out, _ in ended) == 3
    assert json.loads(opmon("status", "-c", config, "--json")[1])["rounds"] == 3


def test_serve_works_and_stops_when_told(workbench: Any, tmp_path: Path) -> None:
    import signal

    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    config = str(workbench.write_yaml(database, schedule={"every": "1s"}))
    workbench.write_window()
    process = subprocess.Popen(
        [sys.executable, "-m", "opmon", "serve", "-c", config], stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: json.loads(opmon("status", "-c", config, "--json")[1])["queue"]["open"] > 0, pause=1.0)
        workbench.answer(workbench.monitor(database))
        until(lambda: json.loads(opmon("status", "-c", config, "--json")[1])["latest"] is not None, pause=1.0)
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, err
    assert "SIGTERM" in err


def test_a_round_that_cannot_go_on_is_given_up(workbench: Any, config: str) -> None:
    workbench.write_window()
    window = workbench.write_window()
    assert opmon("run", "-c", config)[0] == 0
    status = json.loads(opmon("status", "-c", config, "--json")[1])
    assert status["queue"]["open"] > 0
    assert opmon("rounds", "abandon", "2", "-c", config)[0] == WRONG, "a reason is asked for"
    assert opmon("rounds", "abandon", "2", "-c", config, "--why", f"{window.name} was a test")[0] == 0
    after = json.loads(opmon("status", "-c", config, "--json")[1])
    assert after["newest"][0]["state"] == "abandoned"
    assert after["queue"]["open"] < status["queue"]["open"]
    assert opmon("rounds", "abandon", "2", "-c", config, "--why", "again")[0] == WRONG
    assert opmon("run", "-c", config)[0] == 0
    assert opmon("rounds", "abandon", "7", "-c", config, "--why", "x")[0] == WRONG
    assert opmon("rounds", "reopen", "2", "-c", config, "--without", window.name)[0] == WRONG, "nothing is left"
    code, out, _ = opmon("rounds", "reopen", "2", "-c", config)
    assert (code, "200 inputs of round 2" in out, "round 3 now" in out) == (0, True, True)
