"""A server that is down, slow, answers garbage or refuses the token costs nothing, and what to do is told."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from opmon_label_studio.provider import LabelStudio
from real_studio import TOKEN, Studio

from opmon.errors import InputError, NotFoundError, OpmonError, UnavailableError
from opmon.types import Guide, Task

TASK = Task(1, "pets", 1, "i1", {"age": 3}, "t1-0123456789ab", ("cat", "dog"))
GUIDE = Guide(classes={"cat": "", "dog": ""})


@contextmanager
def answering(*parts: bytes, every: float = 0.0) -> Iterator[str]:
    """The address of a server that answers whatever it is asked with these bytes, part by part."""
    listening = socket.create_server(("127.0.0.1", 0))
    closed = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            for part in parts:
                if closed.wait(every):
                    return
                try:
                    connection.sendall(part)
                except OSError:
                    return

    def accept() -> None:
        while not closed.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        closed.set()
        listening.close()


def http(status: str, body: str, kind: str = "application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def troubles(bound: LabelStudio) -> list[OpmonError]:
    """What each call raises."""
    raised = []
    calls = (bound.check, lambda: bound.push([TASK]), lambda: bound.pull(""), lambda: bound.reconcile({TASK.key}))
    for call in calls:
        with pytest.raises(OpmonError) as caught:
            call()
        assert TOKEN not in str(caught.value)
        raised.append(caught.value)
    return raised


def test_a_server_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for trouble in troubles(LabelStudio(url, TOKEN).bind("pets", GUIDE)):
        assert isinstance(trouble, UnavailableError)
        assert f"Label Studio at {url} cannot be reached" in str(trouble)
        assert "Is it running, and is url right?" in str(trouble)


def test_a_server_that_is_slow_is_not_waited_for_longer_than_the_timeout() -> None:
    drip = [http("200 OK", "[" * 400)[:60], *([b"["] * 400)]
    with answering(*drip, every=0.1) as url:
        bound = LabelStudio(url, TOKEN, timeout=0.5).bind("pets", GUIDE)
        began = time.monotonic()
        for trouble in troubles(bound):
            assert isinstance(trouble, UnavailableError)
            assert "did not answer within 0.5 s; nothing is lost" in str(trouble)
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (http("200 OK", "<html>a router</html>", "text/html"), "something that is no JSON; is url right?"),
        (http("200 OK", '["a", "list"]'), "where an object is due"),
        (http("200 OK", '{"results": [{"id": "x", "title": "opmon: pets"}], "release": 3}'), "is due; is url right"),
        (http("200 OK", "[" * 100_000), "no JSON"),
        (b"garbage\r\n\r\n", "cannot be reached"),
        (http("302 Found", ""), "a redirect; put the final address into url"),
        (http("500 Internal Server Error", '{"detail": "no disk"}'), "answered 500: no disk; it is asked again later"),
        (http("429 Too Many Requests", ""), "answered 429"),
        (http("401 Unauthorized", f'{{"detail": "Invalid token {TOKEN}."}}'), "Invalid token ***"),
    ],
)
def test_a_server_that_answers_something_else(answer: bytes, problem: str) -> None:
    with answering(answer) as url:
        for trouble in troubles(LabelStudio(url, TOKEN, timeout=20).bind("pets", GUIDE)):
            assert isinstance(trouble, UnavailableError)
            assert problem in str(trouble)


def test_a_token_that_is_not_taken(studio: Studio, provider: LabelStudio) -> None:
    for wrong in ("0" * 40, "eyJhbGciOiJIUzI1NiJ9.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c2lnbmF0dXJl"):
        bound = replace(provider, token=wrong).bind("pets", GUIDE)
        for call in (lambda: bound.push([TASK]), lambda: bound.pull(""), bound.check):  # noqa: B023 - called at once
            with pytest.raises(
                UnavailableError, match=r"does not take the token \(401.*Personal Access Token"
            ) as raised:
                call()
            assert wrong not in str(raised.value)


def test_what_it_refuses_is_told_in_its_words(studio: Studio, provider: LabelStudio) -> None:
    bound = replace(provider, project="refused").bind("refused", GUIDE)
    bound.push([TASK])
    project = studio.project("refused")
    assert project is not None
    studio.answer(project["id"], TASK.key, "dog", "ann@example.com")
    numbers = replace(provider, project="refused").bind("refused", Guide("regression"))
    with pytest.raises(InputError, match=r"cannot be changed to what is asked now.*Name another project"):
        numbers.push([replace(TASK, key="t2-0123456789ab", classes=())])


def test_a_number_that_names_no_project(provider: LabelStudio) -> None:
    with pytest.raises(NotFoundError, match="has no project 987654 any more, or the token may not see it"):
        replace(provider, project=987654).bind("pets", GUIDE).check()
