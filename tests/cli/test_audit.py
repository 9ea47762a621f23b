"""``opmon audit``: who did what."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from opmon.cli import group
from tests.web.world import World, monitor

Run = Callable[..., Result]


@pytest.fixture
def run(sqlite: str, tmp_path: Path) -> Run:
    path = tmp_path / "opmon.yaml"
    monitors = {"m": monitor(classes=["x", "y"])}
    path.write_text(yaml.safe_dump({"database": sqlite, "monitors": monitors}))
    World.of(sqlite, tmp_path, monitors)

    def command(*arguments: str) -> Result:
        return CliRunner().invoke(group, [*arguments, "-c", str(path)])

    return command


def test_tokens_are_noted_with_who_made_them_and_never_shown(run: Run) -> None:
    assert "nothing was noted since" in run("audit").output
    added = json.loads(
        run("annotators", "add", "ann", "--role", "viewer", "-m", "m", "--expires", "90d", "--json").output
    )
    assert run("annotators", "revoke", "ann").exit_code == 0
    told = [json.loads(line) for line in run("audit", "--json", "--since", "1h").output.splitlines()]
    assert [(each["act"], each["about"]) for each in told] == [
        ("token taken away", "ann"),
        ("token made", "ann, viewer of m"),
    ]
    assert {each["who"] for each in told} == {getpass.getuser()}
    assert {each["known_by"] for each in told} == {"command"}
    shown = run("audit").output
    assert "token made" in shown
    assert added["token"] not in shown
    assert "nothing" in run("audit", "--act", "signed in").output
    assert "nothing" in run("audit", "--since", "2999-01-01").output
    assert run("audit", "--who", "somebody else").output.startswith("nothing")
    assert len(run("audit", "--json", "-n", "1").output.splitlines()) == 1


def test_what_is_piped_elsewhere_is_neither_broken_nor_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "somebody-with-a-name-that-is-longer-than-what-a-column-takes"
    run("annotators", "add", name, "--role", "viewer", "-m", "m")
    head, line = run("audit").output.splitlines()
    assert head.split()[0] == "when"
    assert f"{name}, viewer of m" in line
    assert name in run("annotators", "list").output


def test_tokens_run_out(run: Run) -> None:
    run("annotators", "add", "ann", "--expires", "90d")
    assert "works until" in run("annotators", "list").output
    assert "has a token already" in str(run("annotators", "add", "ann").exception)
    assert "such as 30s" in run("annotators", "add", "ben", "--expires", "soon").output


def test_what_cannot_be_is_told(run: Run) -> None:
    assert "there are: signed in" in run("audit", "--act", "x").output
    assert "must be a moment" in run("audit", "--since", "yesterday").output
