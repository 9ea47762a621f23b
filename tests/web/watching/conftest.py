"""Monitors with a past, as the pages show them; each file of tests has a world of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opmon.web.server import Server
from tests.web.past import watched_world
from tests.web.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return watched_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


@pytest.fixture(scope="module")
def olga(world: World) -> str:
    """The token of an operator: whoever has none is then let in no more."""
    return world.invite("olga", "operator")
