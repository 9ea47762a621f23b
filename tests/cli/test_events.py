"""``opmon events`` and ``opmon compare`` as users run them."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from opmon.cli import WRONG, main
from opmon.store import outbox


def opmon(*arguments: str) -> tuple[int, str, str]:
    """What ``opmon`` prints and how it ends, errors and all."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def alarmed(workbench: Any, tmp_path: Path) -> tuple[str, str]:
    """A monitor with one alarm: its configuration and the event's id."""
    database = f"sqlite:///{tmp_path / 'opmon.db'}"
    rules = [{"type": "accuracy_below", "threshold": 0.9, "certainty": "estimate", "name": "floor"}]
    config = workbench.write_yaml(database, rules=rules)
    monitor = workbench.monitor(database, rules=rules)
    workbench.write_window()
    monitor.advance()
    workbench.answer(monitor, wrong=0.95)
    monitor.advance()
    with monitor.store.read() as connection:
        return str(config), outbox.listing(connection, workbench.name)[0]["id"]


def test_an_event_is_acknowledged_once(alarmed: tuple[str, str]) -> None:
    config, event = alarmed
    assert event in opmon("events", "list", "--open", "-c", config)[1]
    assert "is acknowledged" in opmon("events", "ack", event, "--by", "kim", "--note", "retraining", "-c", config)[1]
    assert "acknowledged before" in opmon("events", "ack", event, "--by", "lee", "-c", config)[1]
    assert "nobody has acknowledged" in opmon("events", "list", "--open", "-c", config)[1]
    listed = opmon("events", "list", "-c", config)[1]
    assert "acknowledged by kim" in listed
    assert "retraining" in listed
    assert json.loads(opmon("events", "show", event, "-c", config)[1])["acknowledged_by"] == "kim"


@pytest.mark.parametrize("kind", [KeyError, OSError])  # by the version of Python
def test_a_user_without_a_name_acknowledges_too(
    alarmed: tuple[str, str], kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may run as a number that no file of users knows."""

    def nobody() -> str:
        raise kind("getpwuid(): uid not found: 1000680000")

    monkeypatch.setattr("getpass.getuser", nobody)
    config, event = alarmed
    code, out, _ = opmon("events", "ack", event, "-c", config)
    assert (code, "is acknowledged" in out) == (0, True)
    assert json.loads(opmon("events", "show", event, "-c", config)[1])["acknowledged_by"] == "somebody"


def test_acknowledging_what_is_not_there(alarmed: tuple[str, str]) -> None:
    code, _, err = opmon("events", "ack", "nothing", "-c", alarmed[0])
    assert code == WRONG
    assert "opmon events list" in err


def test_compare_tells_which_version_is_better(workbench: Any, alarmed: tuple[str, str]) -> None:
    config, _ = alarmed
    workbench.register_again()
    code, out, _ = opmon("compare", "2", "@champion", "-c", config)
    assert code == 0
    assert "0 of them tell the two apart" in out
    found = json.loads(opmon("compare", "v1", "models:/digits/2", "--json", "-c", config)[1])
    assert (found["winner"], found["difference"]) == (None, 0.0)
    assert found["labels"] > 10


@pytest.mark.parametrize("version", ["newest", "v", "1.5"])
def test_compare_knows_what_a_version_is(alarmed: tuple[str, str], version: str) -> None:
    code, _, err = opmon("compare", "1", version, "-c", alarmed[0])
    assert code == WRONG
    assert "a version is a number" in err
