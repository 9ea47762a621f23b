"""A small server that answers as Label Studio does, for what a real one cannot be made to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opmon_label_studio.provider import LabelStudio
from real_studio import TOKEN

from opmon.labels.studio.configuration import ANSWER
from opmon.types import Guide

FIRST = "2026-03-02T08:00:00.000000Z"
_GUIDE = Guide(classes={"cat": "", "dog": ""})


@dataclass
class StandIn:
    """One project with its tasks."""

    title: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    fails: dict[str, list[int]] = field(default_factory=dict)
    """By path with which states the next calls are answered, in order."""
    url: str = ""

    def bound(self, monitor: str) -> LabelStudio:
        return LabelStudio(self.url, TOKEN, project=self.title, timeout=20).bind(monitor, _GUIDE)

    def add(self, key: str, said: str | None = None, at: str = FIRST, **data: Any) -> dict[str, Any]:
        """Put a task there, with one user's answer."""
        part = {"from_name": ANSWER, "to_name": "row", "type": "choices", "value": {"choices": [said]}}
        answers = [{"result": [part], "completed_by": 7, "created_at": at, "updated_at": at}] if said else []
        task = {
            "id": len(self.tasks) + 1,
            "data": {"opmon": key, **data},
            "meta": {"opmon": {"key": key}},
            "updated_at": at,
            "annotations": answers,
            "total_annotations": len(answers),
        }
        self.tasks.append(task)
        return task

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if self.fails.get(path):
            return self.fails[path].pop(0), {"detail": "not now"}
        if path == "/api/users/":
            return 200, [{"id": 7, "email": "ann@example.com"}]
        if path == "/api/projects/":
            return 200, {"results": [{"id": 1, "title": self.title}]}
        if path == "/api/tasks":
            asked = json.loads(query["query"])["filters"]["items"]
            return 200, {"tasks": [task for task in self.tasks if _passes(task, asked)]}
        return 404, {"detail": "Not found."}


def _passes(task: dict[str, Any], asked: list[dict[str, Any]]) -> bool:
    return all(_PASSES[each["filter"].removeprefix("filter:tasks:")](task, each) for each in asked)


_PASSES: dict[str, Callable[[dict[str, Any], dict[str, Any]], bool]] = {
    "id": lambda task, each: task["id"] > each["value"],
    "annotators": lambda task, each: bool(task["annotations"]) is not each["value"],
    "updated_at": lambda task, each: task["updated_at"] > each["value"],
    "data.opmon": lambda task, each: task["data"]["opmon"] in each["value"],
}


@contextmanager
def stand_in(title: str) -> Iterator[StandIn]:
    """The server, while it runs."""
    studio = StandIn(title)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            status, told = studio.answer(self.command, parts.path, query)
            content = b"" if told is None else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    studio.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield studio
    finally:
        server.shutdown()
        server.server_close()
