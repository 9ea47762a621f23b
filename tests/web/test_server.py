"""The server beside the service: it listens where it is told, and stops when it is told."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from opmon.errors import ConfigError
from opmon.web.server import Server, beside
from tests.web.world import World


def test_a_taken_port_is_an_error_only_where_it_was_asked_for(sqlite: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        world = World.of(sqlite, tmp_path, listen=f"127.0.0.1:{port}")
        with pytest.raises(ConfigError, match="cannot listen"), beside(world.settings, world.store):
            pass
        web = world.settings.web.model_copy()
        web.__pydantic_fields_set__.discard("listen")
        quiet = world.settings.model_copy(update={"web": web})
        with beside(quiet, world.store) as server:
            assert server is None
    off = World.of(sqlite, tmp_path, enabled=False)
    with beside(off.settings, off.store) as server:
        assert server is None


def test_addresses_for_people(sqlite: str, tmp_path: Path) -> None:
    def address(**web: object) -> str:
        return World.of(sqlite, tmp_path, **web).settings.web.address

    assert address(listen="0.0.0.0:80") == "http://127.0.0.1:80"
    assert address(listen="[::1]:8080") == "http://[::1]:8080"
    assert address(url="https://opmon.example.com/") == "https://opmon.example.com"
    with pytest.raises(ConfigError, match="a browser finds the pages"):
        address(url="opmon.example.com")
    with pytest.raises(ConfigError, match="an address and a port"):
        address(listen="8080")


def test_a_server_that_is_closed_leaves_its_port(world: World) -> None:
    with world.served() as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/healthz")


def test_a_database_that_is_down_is_told_and_met_again(
    world: World, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opmon.errors import DatabaseUnavailable
    from opmon.store.engine import Store

    def down(*_: object) -> None:
        raise DatabaseUnavailable("it is down")

    with httpx.Client(base_url=server.url, headers={"opmon-annotator": "ann"}) as ann:
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_transaction", down)
            for answer in (
                ann.get("/api/v1/monitors"),
                ann.post("/api/v1/answers", json={"answers": [{"key": "t1-0", "truth": "1"}]}),
            ):
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "does not answer" in ann.get("/label").text
        assert ann.get("/api/v1/monitors").status_code == 200


def test_serve_brings_the_page_and_ends_with_it(workbench: Any, sqlite: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plain = workbench.configuration(sqlite, schedule={"every": "1h"})
    path = workbench.folder / "opmon.yaml"
    path.write_text(yaml.safe_dump({**plain, "web": {"listen": f"127.0.0.1:{port}"}}))
    process = subprocess.Popen(
        [sys.executable, "-m", "opmon", "serve", "-c", str(path)], stderr=subprocess.PIPE, text=True
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"opmon-annotator": "ann"}) as ann:
            for _ in range(600):
                try:
                    told = ann.get("/api/v1/monitors")
                    break
                except httpx.ConnectError:
                    assert process.poll() is None
                    time.sleep(0.1)
            assert [each["name"] for each in told.json()["monitors"]] == [workbench.name]
            assert "What there is to label" in ann.get("/label").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        log = process.communicate()[1]
    assert f"pages at http://127.0.0.1:{port}, labelling at http://127.0.0.1:{port}/label" in log
