"""A client for opmon's HTTP API in one file that needs nothing but Python 3.11: copy it, or import it.

>>> from opmon.client import Client
>>> client = Client("http://127.0.0.1:8080", token="opmon_…")  # doctest: +SKIP
>>> for task in client.tasks("digits"):  # doctest: +SKIP
...     client.answer(task, classify(client.picture(task)))

Each call waits for its answer. Where the server cannot be reached, or is busy, it is asked again for ``patience``
seconds: nothing is recorded twice, for an answer carries the moment when it was given. What the server refuses is a
:class:`Refused`, which says why.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

__all__ = ["Answer", "Client", "Refused", "Task", "Unreachable"]

_BUSY = (408, 429, 502, 503, 504)
_AHEAD, _MOST = 20, 50


class Refused(Exception):
    """The server does not do this; ``status`` is that of HTTP, the text says why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Unreachable(ConnectionError):
    """There was no answer for as long as the client's patience; asking again later is right."""


@dataclass(frozen=True)
class Task:
    """One input to label."""

    key: str
    monitor: str
    round: int
    input_id: str
    values: Mapping[str, Any]
    """What is to be judged, by name: text, numbers, lists. Pictures are in :attr:`pictures`."""
    pictures: Mapping[str, str]
    """Where each picture is, by name; :meth:`Client.picture` fetches one."""
    classes: tuple[str, ...]
    """What may be answered; empty where that is a number, or not known."""
    prediction: str | None
    """What the model answered, where the monitor shows it."""
    due_at: datetime | None


@dataclass(frozen=True)
class Answer:
    """What is said of a task: its truth, or that it is skipped and why."""

    key: str
    truth: str | float | None = None
    why: str | None = None
    seconds: float | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def _plain(self) -> dict[str, Any]:
        truth = None if self.truth is None else str(self.truth)
        at = self.at.isoformat()
        return {
            "key": self.key,
            "truth": truth,
            "skip": truth is None,
            "why": self.why,
            "seconds": self.seconds,
            "at": at,
        }


class Client:
    """Talks to one server as one annotator; not for several threads at once.

    ``token`` is what ``opmon annotators add`` printed; ``name`` is enough on the server's own machine while nobody has
    a token.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        name: str | None = None,
        timeout: float = 30,
        patience: float = 60,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address is that of a server, such as http://127.0.0.1:8080; got {address!r}")
        self.patience = patience
        self._base = parts.path.rstrip("/") + "/api/v1"
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._headers = {"accept": "application/json", "content-type": "application/json"}
        self._headers |= {"authorization": f"Bearer {token}"} if token else {}
        self._headers |= {"opmon-annotator": name.encode().decode("latin-1")} if name else {}  # as HTTP carries it
        self._classes: dict[str, tuple[object, tuple[str, ...]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next call opens another."""
        self._connection.close()

    def me(self) -> dict[str, Any]:
        """Who one is: ``name``, ``role``, ``monitors`` (None: all)."""
        return dict(self._json("GET", "/me"))

    def monitors(self) -> list[dict[str, Any]]:
        """The monitors that one may see, with how much waits in each."""
        return list(self._json("GET", "/monitors")["monitors"])

    def monitor(self, name: str) -> dict[str, Any]:
        """What may be answered, what each class means, the guidelines."""
        return dict(self._json("GET", f"/monitors/{_quoted(name)}"))

    def take(self, monitor: str, count: int = 1) -> list[Task]:
        """Tasks that are one's own for a while: first those that were taken before and not answered."""
        taken = self._json("POST", f"/monitors/{_quoted(monitor)}/take", {"count": count})
        classes = self._usual_classes(monitor, taken.get("classes_mark"))
        return [_task(each, classes) for each in taken["tasks"]]

    def _usual_classes(self, monitor: str, mark: object) -> tuple[str, ...]:
        """The classes of tasks that name none, asked for again where the mark of what was given is another one."""
        if monitor not in self._classes or self._classes[monitor][0] != mark:
            names = tuple(each["name"] for each in self.monitor(monitor)["classes"])
            self._classes[monitor] = mark, names
        return self._classes[monitor][1]

    def tasks(self, monitor: str, ahead: int = _AHEAD) -> Iterator[Task]:
        """All tasks that there are for one, taken ``ahead`` at a time: answer each before asking for the next one.

        One that is not answered is not given again by this iterator.
        """
        met: set[str] = set()
        count = ahead
        while True:
            taken = self.take(monitor, count)
            fresh = [task for task in taken if task.key not in met]
            for task in fresh:
                met.add(task.key)
                yield task
            if not fresh and (len(taken) < count or count == _MOST):
                return
            count = ahead if fresh else min(count + ahead, _MOST)

    def answer(self, task: Task | str, truth: str | float, *, seconds: float | None = None) -> None:
        """Say what a task is; another answer to the same task corrects the last one."""
        self._answer_one(Answer(_key(task), truth, seconds=seconds))

    def skip(self, task: Task | str, why: str) -> None:
        """Say that a task cannot be answered, and why."""
        self._answer_one(Answer(_key(task), None, why))

    def answer_all(self, answers: Iterable[Answer]) -> dict[str, str]:
        """Say what many tasks are; gives, by key, why some could not be taken. All others are recorded."""
        plain = [each._plain() for each in answers]
        refused: dict[str, str] = {}
        for start in range(0, len(plain), 500):
            refused |= self._json("POST", "/answers", {"answers": plain[start : start + 500]})["refused"]
        return refused

    def give_back(self, tasks: Sequence[Task | str]) -> int:
        """Let others have tasks that one will not answer; gives how many of them one had."""
        keys = [_key(task) for task in tasks]
        return int(self._json("POST", "/give-back", {"keys": keys})["given_back"]) if keys else 0

    def said(self, monitor: str, last: int = 20) -> list[dict[str, Any]]:
        """What one said lately, newest first: ``task``, ``truth`` (None: skipped), ``why``, ``at``."""
        return list(self._json("GET", f"/monitors/{_quoted(monitor)}/said?last={last}")["said"])

    def picture(self, task: Task, name: str | None = None) -> bytes:
        """A picture of a task as PNG, JPEG, GIF or WebP: the one of that name, or the only one."""
        if name is None and len(task.pictures) != 1:
            raise ValueError(f"say which picture of task {task.key}: {', '.join(task.pictures) or 'it has none'}")
        return self._ask("GET", task.pictures[name or next(iter(task.pictures))].removeprefix("/api/v1"), None)

    def _answer_one(self, answer: Answer) -> None:
        for why in self.answer_all([answer]).values():
            raise Refused(422, why)

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return json.loads(self._ask(method, path, None if body is None else json.dumps(body).encode()))

    def _ask(self, method: str, path: str, body: bytes | None) -> bytes:
        """The answer to one request, which may be sent again: none of them does anything twice."""
        until, pause = time.monotonic() + self.patience, 0.1
        while True:
            problem, wait = "", 0.0
            try:
                self._connection.request(method, self._base + path, body, self._headers)
                answer = self._connection.getresponse()
                content = answer.read()
                if answer.status < 300:
                    return content
                problem = _why(answer.status, content)
                if answer.status not in _BUSY:
                    raise Refused(answer.status, problem)
                wait = _seconds(answer.headers.get("retry-after"))
            except (OSError, http.client.HTTPException) as exc:
                self._connection.close()
                problem = str(exc) or type(exc).__name__
            wait = max(wait, pause)
            if time.monotonic() + wait > until:
                raise Unreachable(f"{self._connection.host}:{self._connection.port} did not answer: {problem}")
            time.sleep(wait)
            pause = min(2 * pause, 5.0)


def _seconds(text: str | None) -> float:
    """How long a server asks to wait; 0 where it does not say, or names a time of day.

    >>> [_seconds(text) for text in ("2", None, "Fri, 20 Nov 2026 12:00:00 GMT")]
    [2.0, 0.0, 0.0]
    """
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0


def _task(told: Mapping[str, Any], classes: tuple[str, ...]) -> Task:
    fields = told["fields"]
    return Task(
        key=told["key"],
        monitor=told["monitor"],
        round=told["round"],
        input_id=told["input_id"],
        values={each["name"]: each["value"] for each in fields if each["kind"] != "picture"},
        pictures={each["name"]: each["url"] for each in fields if each["kind"] == "picture"},
        classes=classes if told["classes"] is None else tuple(told["classes"]),
        prediction=told["prediction"],
        due_at=None if told["due_at"] is None else datetime.fromisoformat(told["due_at"]),
    )


def _key(task: Task | str) -> str:
    return task if isinstance(task, str) else task.key


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _why(status: int, content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {status}"
