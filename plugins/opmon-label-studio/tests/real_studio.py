"""A real Label Studio on loopback, in an environment of its own that is made once on a machine; and its users."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from opmon.labels.studio.configuration import ANSWER

RELEASE = "1.23.2"
TOKEN = "0123456789abcdef0123456789abcdef01234567"
QUIET = {
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "LABEL_STUDIO_USERNAME": "owner@example.com",
    "LABEL_STUDIO_PASSWORD": "opmon-tests",
    "LABEL_STUDIO_USER_TOKEN": TOKEN,
}


def environment() -> Path:
    """The folder of the environment with Label Studio in it: ``OPMON_LABEL_STUDIO``, else made in the user's cache."""
    given = os.environ.get("OPMON_LABEL_STUDIO")
    if given:
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "opmon-tests")
    folder = cache / f"label-studio-{RELEASE}-python{sys.version_info.major}.{sys.version_info.minor}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "label-studio.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}") or "uv"
            subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder], check=True)
            python = folder / "bin" / "python"
            subprocess.run([uv, "pip", "install", "-q", "--python", python, f"label-studio=={RELEASE}"], check=True)
            (folder / "whole").touch()
        if not (folder / "tables" / "whole").exists():  # its migrations take longer than all the tests
            shutil.rmtree(folder / "tables", ignore_errors=True)
            server = Studio(folder, folder / "tables")
            server.start()
            server.stop()
            (folder / "tables" / "whole").touch()
    return folder


@dataclass
class Studio:
    """The server, and people who use it."""

    environment: Path
    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", self.port))
            self.port = free.getsockname()[1]
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("LABEL_STUDIO", "DJANGO"))}
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [
                *(self.environment / "bin" / "python", "-m", "label_studio.server", "start", "--no-browser"),
                *("--internal-host", "127.0.0.1", "--port", str(self.port), "--enable-legacy-api-token"),
            ],
            env={**own, **QUIET, "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder), "HOME": str(self.folder)},
            cwd=self.folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.await_()

    def await_(self) -> None:
        until = time.monotonic() + 400
        while time.monotonic() < until:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()[-3000:]
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((self.folder / "log").read_text()[-3000:])

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)

    def call(self, method: str, path: str, body: object = None, token: str = TOKEN, **query: object) -> Any:
        """What the API answers, as JSON."""
        address = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        request = urllib.request.Request(
            address,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Token {token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            content = response.read()
        return json.loads(content) if content else None

    def user(self, email: str) -> int:
        """The number of the user with this address, who is made if need be."""
        users = {each["email"]: each["id"] for each in self.call("GET", "/api/users/")}
        if email not in users:
            made = {"email": email, "username": email, "password": "opmon-tests"}
            users[email] = self.call("POST", "/api/users/", made)["id"]
        return int(users[email])

    def project(self, title: str) -> dict[str, Any] | None:
        found = self.call("GET", "/api/projects/", title=title, page_size=100)["results"]
        return next((each for each in found if each["title"] == title), None)

    def tasks(self, project: int, key: str | None = None) -> list[dict[str, Any]]:
        """The tasks of a project, or those of one key, in the order in which annotators meet them."""
        only = [{"filter": "filter:tasks:data.opmon", "operator": "equal", "type": "String", "value": key}]
        chosen = json.dumps(
            {"ordering": ["tasks:id"], "filters": {"conjunction": "and", "items": only if key is not None else []}}
        )
        found = self.call("GET", "/api/tasks", project=project, page_size=5000, fields="all", query=chosen)
        return list(found["tasks"])

    def answer(self, project: int, key: str, truth: str | float | None, email: str) -> None:
        """Say something of a task as a user; what that user has said before is corrected."""
        task = self.tasks(project, key)[0]
        number = isinstance(truth, float)
        value = {"number": truth} if number else {"choices": [truth]}
        about = (task["data"]["picture"] and "picture") or (task["data"]["text"] and "text") or "row"
        part = {"from_name": ANSWER, "to_name": about, "type": "number" if number else "choices", "value": value}
        said = {"result": [] if truth is None else [part], "was_cancelled": truth is None, "lead_time": 4.5}
        by = self.user(email)
        before = next((each["id"] for each in task["annotations"] if each["completed_by"] == by), None)
        if before is not None:
            self.call("PATCH", f"/api/annotations/{before}/", said)
        else:
            self.call("POST", f"/api/tasks/{task['id']}/annotations/", {**said, "completed_by": by})


@dataclass
class People:
    """The annotators of the conformance suite."""

    studio: Studio
    title: str

    @property
    def number(self) -> int:
        found = self.studio.project(self.title)
        assert found is not None, f"there is no project {self.title!r}"
        return int(found["id"])

    def tasks(self) -> list[str]:
        return [task["data"]["opmon"] for task in self.studio.tasks(self.number)]

    def say(self, key: str, truth: str | None, annotator: str, at: datetime) -> None:
        self.studio.answer(self.number, key, truth, annotator)
