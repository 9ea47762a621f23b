"""A small server that answers as Label Studio does, for what a real one cannot be made to do."""

from __future__ import annotations

import json
import re
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
    """Projects by their numbers, with their tasks and files; the first project is there."""

    title: str
    projects: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    files: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By its number the project and the name of a file."""
    lists_files: bool = True
    """Whether it tells which files there are; older releases only tell of those that are asked for."""
    fails: dict[str, list[int]] = field(default_factory=dict)
    """By path with which states the next calls are answered, in order."""
    url: str = ""

    def bound(self, monitor: str) -> LabelStudio:
        return LabelStudio(self.url, TOKEN, project=self.title, timeout=20).bind(monitor, _GUIDE)

    def add(
        self, key: str, said: str | None = None, at: str = FIRST, project: int = 1, meta: Any = None, **data: Any
    ) -> dict[str, Any]:
        """Put a task there, with one user's answer."""
        part = {"from_name": ANSWER, "to_name": "row", "type": "choices", "value": {"choices": [said]}}
        answers = [{"result": [part], "completed_by": 7, "created_at": at, "updated_at": at}] if said else []
        task = {
            "id": 1 + max((task["id"] for task in self.tasks), default=0),
            "project": project,
            "data": {**data, "opmon": key},
            "meta": meta or {"opmon": {"key": key}},
            "updated_at": at,
            "annotations": answers,
            "total_annotations": len(answers),
        }
        self.tasks.append(task)
        return task

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if self.fails.get(path):
            return self.fails[path].pop(0), {"detail": "not now"}
        if path == "/api/users/":
            return 200, [{"id": 7, "email": "ann@example.com"}]
        if path == "/api/projects/":
            return self._of_projects(method, query, body)
        if path == "/api/tasks":
            asked = json.loads(query["query"])["filters"]["items"]
            own = [task for task in self.tasks if task["project"] == int(query["project"])]
            return 200, {"tasks": [task for task in own if _passes(task, asked)]}
        name, _, rest = path.removeprefix("/api/").partition("/")
        if name == "tasks":
            return self._of_a_task(method, int(rest.strip("/")))
        if path.startswith("/api/import/file-upload/"):
            return (204 if self.files.pop(int(path.rpartition("/")[2]), None) else 404), None
        if name == "projects" and rest.endswith("/import"):
            return 201, self._taken(int(rest.partition("/")[0]), body)
        if name == "projects" and rest.endswith("/file-uploads"):
            return 200, self._told_files(int(rest.partition("/")[0]), query)
        return 404, {"detail": "Not found."}

    def _of_projects(self, method: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if method == "POST":
            self.projects.append({**json.loads(body), "id": len(self.projects) + 1})
            return 201, self.projects[-1]
        return 200, {"results": [each for each in self.projects if query.get("title", "") in each["title"]]}

    def _of_a_task(self, method: str, task_id: int) -> tuple[int, Any]:
        found = next((task for task in self.tasks if task["id"] == task_id), None)
        if found is not None and method == "DELETE":
            self.tasks.remove(found)
            return 204, None
        return (404, None) if found is None else (200, found)

    def _taken(self, project: int, body: bytes) -> Any:
        if body.startswith(b"["):
            made = json.loads(body)
            for task in made:
                self.add(task["data"]["opmon"], project=project, meta=task["meta"], **task["data"])
            return {"task_count": len(made)}
        first = 1 + max(self.files, default=0)
        names = re.findall(rb'filename="([^"]*)"', body)
        for number, name in enumerate(names, first):
            self.files[number] = project, f"upload/{project}/0a1b2c3d-{name.decode()}"
        return {"file_upload_ids": [*range(first, first + len(names))]}

    def _told_files(self, project: int, query: dict[str, str]) -> Any:
        every = self.lists_files and query.get("all") == "true"
        ids = json.loads(query.get("ids", "[]"))
        own = {number: name for number, (of, name) in self.files.items() if of == project}
        return [{"id": number, "file": name} for number, name in own.items() if every or number in ids]


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
    studio = StandIn(title, [{"id": 1, "title": title}])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, told = studio.answer(self.command, parts.path, query, body)
            content = b"" if told is None else json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_DELETE(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
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
