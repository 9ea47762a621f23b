"""Deliveries to targets that fail in every way, by a worker killed at random: every event arrives, under one id."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from opmon.store import outbox, rounds
from opmon.store.engine import Store, open_store
from opmon.store.leases import hold
from opmon.store.plans import RoundPlan
from opmon.triggers import delivery
from opmon.triggers.webhook import Webhook
from opmon.types import Slice
from tests.forked import forks

KILLS = int(os.environ.get("OPMON_TEST_KILLS", "30"))
EVENTS = 12
NAME = "digits"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def busy(status: str, *headers: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "", "")).encode()


def hang(connection: socket.socket) -> None:
    time.sleep(1.0)


def reset(connection: socket.socket) -> None:
    """The connection is torn down before a word is said."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def die_mid_answer(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


def accepted_then_dead(connection: socket.socket) -> None:
    """Yes is said, and the line is cut before the body is through: it was taken."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")


MOODS: dict[str, bytes | Callable[[socket.socket], None]] = {
    "500": busy("500 Internal Server Error"),
    "503": busy("503 Service Unavailable", "Retry-After: 1"),
    "429": busy("429 Too Many Requests", "Retry-After: 1"),
    "hangs": hang,
    "resets": reset,
    "dies mid-answer": die_mid_answer,
    "dies after yes": accepted_then_dead,
}


@dataclass
class Target:
    """A receiver that is in a bad mood most of the time and counts what it got."""

    listener: socket.socket
    dice: random.Random
    patience: float = 0.6
    got: Counter[str] = field(default_factory=Counter)
    """Requests by event id, whatever was answered."""
    done: list[str] = field(default_factory=list)
    """What a receiver that remembers ids has done, once for each id it said yes to."""
    mismatched: list[str] = field(default_factory=list)
    moods: Counter[str] = field(default_factory=Counter)

    @property
    def heard(self) -> int:
        """How many requests there were."""
        return sum(self.got.values())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/hook"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError), connection:
            identifier, inside = read_ids(connection)
            self.got[identifier] += 1
            if identifier != inside:
                self.mismatched.append(identifier)
            mood = self.dice.choice(list(MOODS)) if self.dice.random() < self.patience else "yes"
            self.moods[mood] += 1
            if mood in ("yes", "dies after yes") and identifier not in self.done:
                self.done.append(identifier)
            answer = MOODS.get(mood, OK)
            answer(connection) if callable(answer) else connection.sendall(answer)


def read_ids(connection: socket.socket) -> tuple[str, str]:
    """The id in the header and the one in the body."""
    connection.settimeout(5)
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(65536) or error()
    head, _, body = content.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536) or error()
    return headers["webhook-id"], json.loads(body)["data"]["id"]


def error() -> bytes:
    raise OSError("the other side is gone")


@pytest.fixture
def target() -> Iterator[Target]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        made = Target(listener, random.Random(5))
        threading.Thread(target=made.serve, daemon=True).start()
        yield made


@pytest.fixture
def store(database: str) -> Store:
    store, now = open_store(database), datetime.now(UTC)
    with store.write() as connection:
        rounds.add(
            connection,
            NAME,
            [Slice("a", "0", "10", 10, now)],
            received=10,
            only_version=None,
            model_name=NAME,
            model_version="1",
            plan=RoundPlan(),
            opened_at=now,
        )
    return store


def add_events(store: Store, count: int = EVENTS) -> list[str]:
    found = []
    with store.write() as connection:
        round_id = rounds.get(connection, NAME, 1).id
        for number in range(count):
            key = outbox.event_id(NAME, "floor", "1", outbox.ALARM, number)
            body = {"id": key, "monitor": NAME, "rule": f"floor-{number}", "type": outbox.ALARM, "message": "too low",
                    "at": datetime.now(UTC).isoformat(), "round": number}  # fmt: skip
            outbox.add(connection, round_id, body, ["hook"], datetime.now(UTC))
            found.append(key)
    return found


def work(
    database: str,
    url: str,
    hours: float,
    allow: tuple[str, ...] = ("127.0.0.1",),
    begun: Any = None,
    timeout: float = 60.0,
) -> None:
    """One worker's turn, ``hours`` later than now, so that what waits for its next try is due."""
    store = open_store(database)
    hook = Webhook(url, timeout=timeout, allow=allow)
    with hold(store, NAME) as lease:
        if begun is not None:
            begun.set()
        delivery.deliver(lease, NAME, {"hook": hook}, lambda: datetime.now(UTC) + timedelta(hours=hours))


def states(store: Store) -> Counter[str]:
    with store.read() as connection:
        return Counter(d["state"] for event in outbox.listing(connection, NAME) for d in event["deliveries"])


def kept_alive(store: Store) -> None:
    """Deliveries that the moods have tired out are replayed, as the person on call would."""
    with store.write() as connection:
        for event in outbox.listing(connection, NAME):
            if any(delivery["state"] == "dead" for delivery in event["deliveries"]):
                outbox.replay(connection, event["id"], datetime.now(UTC))


@pytest.mark.timeout(1800)
def test_killed_at_random_moments_every_event_arrives_under_one_id(store: Store, target: Target, database: str) -> None:
    expected, dice = add_events(store), random.Random(11)
    context = forks()
    kills, turn = 0, 0
    while kills < KILLS or target.heard <= KILLS / 2 or set(MOODS) - set(target.moods):
        turn += 1
        begun = context.Event()
        options = {"begun": begun, "timeout": 0.5}
        process = context.Process(target=work, args=(database, target.url, 24.0 * turn), kwargs=options)
        process.start()
        begun.wait()  # the kills hit deliveries, not the start of the worker
        enough = target.heard + dice.randint(0, 3)
        while process.is_alive() and target.heard < enough:
            process.join(0.005)
        process.join(dice.uniform(0.0, 0.1))
        if process.is_alive():
            process.kill()
            process.join()
            kills += process.exitcode == -signal.SIGKILL  # it may have ended meanwhile
        process.join()
        free_lease(store)
        if not states(store)["pending"]:
            with store.write() as connection:  # all are through: begin again with those that were, so that kills hit
                connection.execute(outbox.deliveries.update().values(state="pending", attempts=0))
        kept_alive(store)
    target.patience = 0.0
    while states(store)["pending"] or states(store)["dead"]:
        turn += 1
        kept_alive(store)
        work(database, target.url, 24.0 * turn)
    assert states(store) == {"delivered": EVENTS}
    assert set(target.got) == set(expected), "nothing lost, nothing under an id of its own"
    assert sorted(target.done) == sorted(expected), "whoever remembers ids does each once"
    assert target.mismatched == []


def free_lease(store: Store) -> None:
    """A killed worker's lease runs out by itself; the test does not wait for it."""
    from opmon.store.schema import leases

    with store.write() as connection:
        connection.execute(leases.update().values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))


def test_retry_after_is_kept_to(store: Store, target: Target, database: str) -> None:
    add_events(store, delivery.PATIENCE)
    target.patience, target.dice = 1.0, random.Random(1)
    before = datetime.now(UTC)
    MOOD = busy("429 Too Many Requests", "Retry-After: 3600")
    target.handle = lambda connection: answer_once(connection, MOOD)  # type: ignore[method-assign]
    work(database, target.url, 0.0)
    with store.read() as connection:
        waits = [d["next_at"] - before for e in outbox.listing(connection, NAME) for d in e["deliveries"]]
    assert all(wait >= timedelta(hours=1) for wait in waits)


def answer_once(connection: socket.socket, answer: bytes) -> None:
    with contextlib.suppress(OSError), connection:
        read_ids(connection)
        connection.sendall(answer)


def test_a_redirect_to_a_private_address_is_not_followed(store: Store, target: Target, database: str) -> None:
    events = add_events(store)
    with socket.create_server(("127.0.0.2", 0)) as forbidden:
        forbidden.settimeout(0.2)
        where = f"http://127.0.0.2:{forbidden.getsockname()[1]}/"
        moved = busy("307 Temporary Redirect", f"Location: {where}")
        target.handle = lambda connection: answer_once(connection, moved)  # type: ignore[method-assign]
        work(database, target.url, 0.0)
        with pytest.raises(TimeoutError):
            forbidden.accept()
    assert states(store) == {"dead": len(events)}


def test_nothing_is_sent_to_a_forbidden_address(store: Store, database: str) -> None:
    events = add_events(store)
    with socket.create_server(("127.0.0.1", 0)) as forbidden:
        forbidden.settimeout(0.2)
        work(database, f"https://127.0.0.1:{forbidden.getsockname()[1]}/", 0.0, allow=())
        with pytest.raises(TimeoutError):
            forbidden.accept()
    assert states(store) == {"dead": len(events)}
