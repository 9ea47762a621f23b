"""The client of one file, against the real server."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import opmon.client
from opmon.client import Answer, Client, Refused, Unreachable
from opmon.web.server import Server
from tests.web.world import DIGITS, World, encoded, monitor, picture


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    made = World.of(sqlite, tmp_path, {name: monitor(classes=list(DIGITS)) for name in ("others", "digits")})
    made.ask("digits", [{"picture": encoded(picture(k % 10)), "age": k} for k in range(12)])
    return made


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    with world.served() as server:
        yield server


@pytest.fixture
def client_of(server: Server) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def client(name: str | None = "Zoë", **options: object) -> Client:
        made.append(Client(server.url, name=name, patience=5, **options))  # type: ignore[arg-type]
        return made[-1]

    yield client
    for each in made:
        each.close()


def test_all_tasks_are_labelled(world: World, client_of: Callable[..., Client]) -> None:
    client = client_of()
    assert client.me()["name"] == "Zoë"
    assert [each["name"] for each in client.monitors()] == ["others", "digits"]
    seen = []
    for task in client.tasks("digits", ahead=5):
        assert task.classes == DIGITS
        assert client.picture(task).startswith(b"\x89PNG")
        assert client.picture(task, "picture") == client.picture(task)
        client.answer(task, task.values["age"] % 10, seconds=0.5)
        seen.append(task.input_id)
    assert [(task, truth) for task, _, truth, _ in world.said()] == [(seen[k], str(k % 10)) for k in range(12)]


def test_a_client_that_lives_long_has_the_classes_of_each_round(sqlite: str, tmp_path: Path) -> None:
    """The first round's model is not there yet, and its next version knows one class more."""
    world = World.of(sqlite, tmp_path, {"pets": monitor()})
    with world.served() as server, Client(server.url, name="Zoë", patience=5) as client:
        assert client.take("pets") == []
        for names in (("cat", "dog"), ("cat", "cow", "dog")):
            world.ask("pets", [{"x": 1}], classes=names)
            (task,) = client.take("pets")
            assert task.classes == names
            client.answer(task, names[1])
    assert [truth for _, _, truth, _ in world.said()] == ["dog", "cow"]


def test_tasks_that_are_left_alone_stop_nothing(client_of: Callable[..., Client]) -> None:
    assert len(list(client_of().tasks("digits", ahead=3))) == 12


def test_skips_corrections_and_what_is_given_back(world: World, client_of: Callable[..., Client]) -> None:
    client = client_of()
    first, second, third = client.take("digits", 3)
    client.answer(first, "3")
    client.answer(first, "4")
    client.skip(second, "blurred")
    assert client.give_back([third]) == 1
    assert client.give_back([]) == 0
    assert [(each["truth"], each["why"]) for each in client.said("digits")] == [(None, "blurred"), ("4", None)]
    assert first.key not in {task.key for task in client.take("digits", 50)}


def test_refusals_say_why(client_of: Callable[..., Client]) -> None:
    client = client_of()
    (task,) = client.take("digits")
    with pytest.raises(Refused, match="classes 0, 1"):
        client.answer(task, "a dog")
    refused = client.answer_all([Answer(task.key, "1"), Answer("t1-000000000000", "1")])
    assert list(refused) == ["t1-000000000000"]
    with pytest.raises(Refused, match="no monitor 'birds'") as caught:
        client.monitor("birds")
    assert caught.value.status == 404
    with pytest.raises(Refused, match="opmon-annotator"):
        client_of(name=None).me()
    with pytest.raises(ValueError, match="it has none"):
        client.picture(replace(task, pictures={}))
    with pytest.raises(ValueError, match="address"):
        Client("127.0.0.1:8080")


def test_a_connection_that_was_cut_is_made_again(world: World, client_of: Callable[..., Client]) -> None:
    client = client_of()
    (task,) = client.take("digits")
    sock = client._connection.sock
    assert sock is not None
    sock.close()
    client.answer(task, "1")
    assert len(world.said()) == 1


def test_a_server_that_is_gone_is_waited_for_and_given_up(world: World) -> None:
    with world.served() as server:
        url = server.url
    with Client(url, name="ann", patience=0.3) as client, pytest.raises(Unreachable, match="did not answer"):
        client.me()


def test_a_token_is_sent(world: World, client_of: Callable[..., Client]) -> None:
    assert client_of(name=None, token=world.invite("ann")).me() == {
        "name": "ann",
        "role": "annotator",
        "monitors": None,
        "by": "token",
        "csrf": "",
    }


def test_it_needs_nothing_but_python() -> None:
    tree = ast.parse(Path(opmon.client.__file__).read_text(encoding="utf-8"))
    named = [
        [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert {name.split(".")[0] for name in itertools.chain(*named)} <= sys.stdlib_module_names
