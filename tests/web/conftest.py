"""A world with pictures of digits, served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from opmon.web.server import Server
from tests.web.world import World, encoded, picture


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    """Twelve pictures of digits to label."""
    made = World.of(sqlite, tmp_path)
    made.ask("digits", [{"picture": encoded(picture(k % 10)), "age": k} for k in range(12)])
    return made


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


@pytest.fixture
def client_of(server: Server) -> Iterator[Callable[..., httpx.Client]]:
    """HTTP as an annotator speaks it, by token or by name; without TLS, whose certificates take long to load."""
    made: list[httpx.Client] = []

    def client(token: str | None = None, name: str | None = None, **more: Any) -> httpx.Client:
        headers: dict[str, str | bytes] = {"authorization": f"Bearer {token}"} if token else {}
        headers |= {"opmon-annotator": name.encode()} if name else {}
        headers |= more.pop("headers", {})
        made.append(httpx.Client(base_url=server.url, headers=headers, verify=False, **more))
        return made[-1]

    yield client
    for each in made:
        each.close()
