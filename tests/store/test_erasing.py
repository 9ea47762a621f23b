"""What is forgotten is asked of nobody, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from opmon.store import erasing, examining, queue, readiness, rounds
from tests.web.world import World, monitor


@pytest.fixture
def world(database: str, tmp_path: Path) -> World:
    return World.of(database, tmp_path, {"digits": monitor(classes=["0", "1"])})


@pytest.fixture
def ann(world: World) -> Iterator[httpx.Client]:
    """An annotator with a client of her own."""
    token = world.invite("ann")
    with (
        world.served() as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
    ):
        yield client


def taken(client: httpx.Client) -> dict[str, str]:
    """The keys of the tasks that an annotator has, by their inputs."""
    told = client.post("/api/v1/monitors/digits/take", json={"count": 5}).raise_for_status().json()
    return {task["input_id"]: task["key"] for task in told["tasks"]}


def answer(client: httpx.Client, key: str) -> None:
    told = client.post("/api/v1/answers", json={"answers": [{"key": key, "truth": "1"}]}).raise_for_status().json()
    assert told == {"recorded": 1, "refused": {}}


def forget(world: World, name: str) -> None:
    with world.store.write() as connection:
        assert erasing.erase_input(connection, "digits", name, datetime.now(UTC)) == 1


def open_and_ready(world: World) -> tuple[int, bool]:
    now = datetime.now(UTC)
    assert list(examining.problems(world.store)) == []
    with world.store.read() as connection:
        return queue.progress(connection, ["digits"], now)["digits"][2], rounds.get(connection, "digits", 1).ready


def test_an_input_that_an_annotator_has_is_not_handed_out_again(world: World, ann: httpx.Client) -> None:
    first, second = world.ask("digits", [{"age": 1}, {"age": 2}])
    held = taken(ann)
    forget(world, first)
    assert taken(ann) == {second: held[second]}
    assert open_and_ready(world) == (1, False)
    answer(ann, held[second])
    assert open_and_ready(world) == (0, True), "the round waits for nobody"
    answer(ann, held[first])
    assert open_and_ready(world) == (0, True), "what was on the screen may be answered, and counts as one"
    assert [said[:3] for said in world.said()] == [(second, "ann", "1"), (first, "ann", "1")]


def test_a_round_of_which_all_is_forgotten_goes_on(world: World, ann: httpx.Client) -> None:
    (name,) = world.ask("digits", [{"age": 1}], needs=2)
    forget(world, name)
    assert taken(ann) == {}
    assert open_and_ready(world) == (0, True)
    with world.store.write() as connection:
        assert erasing.erase_input(connection, "digits", name, datetime.now(UTC)) == 0
        assert [task.erased for task in erasing.tasks_of(connection, "digits", name)] == [True]
        assert readiness.monitors_with_work(connection, datetime.now(UTC)) == {"digits"}
