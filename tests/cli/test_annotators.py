"""``opmon annotators``: who may use the pages and the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml
from click.testing import CliRunner, Result

from opmon.cli import group
from opmon.errors import InputError, NotFoundError
from tests.web.world import World, monitor

Run = Callable[..., Result]


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    monitors = {name: monitor(classes=["x", "y"]) for name in ("a", "b")}
    path = tmp_path / "opmon.yaml"
    path.write_text(
        yaml.safe_dump({"database": sqlite, "web": {"url": "https://opmon.example.com/"}, "monitors": monitors})
    )
    return World.of(sqlite, tmp_path, monitors)


@pytest.fixture
def run(world: World, tmp_path: Path) -> Run:
    def command(*arguments: str) -> Result:
        return CliRunner().invoke(group, ["annotators", *arguments, "-c", str(tmp_path / "opmon.yaml")])

    return command


def test_somebody_is_invited_listed_and_revoked(world: World, run: Run) -> None:
    shown = run("add", "Ann  Lee", "--role", "viewer", "-m", "a")
    assert shown.exit_code == 0, shown.output
    token = shown.output.split("token  ")[1].split()[0]
    assert f"https://opmon.example.com/sign-in#{token}" in shown.output
    with world.served() as server:
        me = httpx.get(f"{server.url}/api/v1/me", headers={"authorization": f"Bearer {token}"}).json()
    assert me == {"name": "Ann Lee", "role": "viewer", "monitors": ["a"], "by": "token", "csrf": ""}
    assert token not in run("list").output
    told = json.loads(run("list", "--json").output)
    assert [(each["name"], each["role"], each["monitors"]) for each in told] == [("Ann Lee", "viewer", ["a"])]
    assert "works" in run("list").output
    assert run("revoke", "Ann Lee").exit_code == 0
    assert "taken away" in run("list").output
    again = json.loads(run("add", "Ann Lee", "--json").output)
    assert again["token"] != token
    assert again["monitors"] is None


def test_what_cannot_be_is_told(run: Run) -> None:
    assert "nobody was invited" in run("list").output
    assert isinstance(run("revoke", "ann").exception, NotFoundError)
    assert isinstance(run("add", "ann", "-m", "c").exception, NotFoundError)
    assert isinstance(run("add", "truth").exception, InputError)
    assert run("add", "ann").exit_code == 0
    assert isinstance(run("add", "ann").exception, InputError)


def test_no_token_is_in_the_database(world: World, run: Run, tmp_path: Path) -> None:
    token = json.loads(run("add", "ann", "--json").output)["token"]
    world.store.close()
    assert token.encode() not in (tmp_path / "opmon.db").read_bytes()
