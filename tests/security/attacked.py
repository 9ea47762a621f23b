"""A real ``opmon serve`` with everything hostile in it that its database and its configuration can hold."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from opmon.store.audit import Act, Entry, note
from tests.made_once import new_opmon_database
from tests.patience import LONGEST
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, encoded, monitor, picture

API = "/api/v1"
SCRIPT = "<script>attacked()</script>"
HOSTILE = (
    SCRIPT,
    '"><img src=x onerror=attacked()>',
    "'-attacked()-'",
    "</script><svg onload=attacked()>",
    "{{7*191}}#{7*191}",
    "javascript:attacked()",
)
"""What runs if a page shows it as anything but text."""
GUIDELINES = "\n\n".join(
    (
        *HOSTILE,
        "[a](javascript:attacked())",
        "[b](data:text/html;base64,PHNjcmlwdD5hdHRhY2tlZCgpPC9zY3JpcHQ+)",
        "![c](https://evil.example.com/x.png)",
        '<https://evil.example.com/" onmouseover="attacked()>',
        "[d]: javascript:attacked()",
        "[d]",
        "`</code><script>attacked()</script>`",
    )
)
SECRETS = {
    "OPMON_INGEST_TOKEN": "ingest-s3cret-Q7vK2m9x",
    "MLFLOW_TRACKING_PASSWORD": "mlflow-s3cret-W8bN4r1z",
    "AWS_SECRET_ACCESS_KEY": "aws-s3cret/+K3jH6t0p",
    "HOOK_SECRET": "whsec_" + base64.b64encode(b"hook-s3cret-L5gD82sq-Z4mW7x").decode(),
}
ROLES = ("annotator", "viewer", "operator")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass
class Attacked:
    """The service, its world, and a token for each role."""

    folder: Path
    world: World
    url: str
    ingest: str
    process: subprocess.Popen[bytes]
    tokens: dict[str, str] = field(default_factory=dict)
    clients: list[httpx.Client] = field(default_factory=list)

    def client(self, role: str | None = None, **more: Any) -> httpx.Client:
        own = {} if role is None else {"authorization": f"Bearer {self.tokens[role]}"}
        made = httpx.Client(base_url=self.url, headers={**own, **more.pop("headers", {})}, **more)
        self.clients.append(made)
        return made

    @property
    def said(self) -> str:
        """All that the service printed and logged."""
        return (self.folder / "said.txt").read_text(encoding="utf-8", errors="replace")

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None and httpx.get(f"{self.url}/healthz").json() == {"status": "ok"}

    @property
    def memory(self) -> int:
        """Megabytes that the service has in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024


def configuration(folder: Path, web: int, ingest: int) -> Mapping[str, Any]:
    hostile = [f"{k}{text}"[:60] for k, text in enumerate(HOSTILE)]
    return {
        "mlflow": {"tracking_uri": "http://opmon:${MLFLOW_TRACKING_PASSWORD}@127.0.0.1:9"},
        "database": f"sqlite:///{folder}/opmon.db",
        "web": {"listen": f"127.0.0.1:{web}", "max_body": 1_000_000},
        "ingest": {"listen": f"127.0.0.1:{ingest}", "token": "${OPMON_INGEST_TOKEN}", "max_body": 2_000_000},
        "monitors": {
            "digits": monitor(classes=list(DIGITS), rules=[FLOOR]),
            "hostile": monitor(
                classes=hostile,
                rules=[FLOOR],
                labels={"guidelines": GUIDELINES, "classes": {hostile[0]: {"text": SCRIPT}}},
                actions=[{"type": "webhook", "url": "https://hooks.example.com/x", "secret": "${HOOK_SECRET}"}],
            ),
            "prices": monitor(problem="regression", unit="<b>€"),
            "pictures": monitor(classes=list(DIGITS), inputs={"image": {"column": "picture"}}),
            "bombs": monitor(classes=list(DIGITS), inputs={"image": {"column": "picture"}}),
            "sent": {"model": "models:/x/1", "source": {"type": "ingest"}, "classes": ["a", "b"]},
        },
    }


@contextmanager
def attacked(folder: Path) -> Iterator[Attacked]:
    """The service at work, with nothing private but by its own doing: the umask is 0."""
    web, ingest = free_port(), free_port()
    plain = configuration(folder, web, ingest)
    path = folder / "opmon.yaml"
    path.write_text(yaml.safe_dump(plain))
    new_opmon_database(folder / "opmon.db")
    from opmon.config import load
    from opmon.store.engine import open_store

    settings = load(path, {**os.environ, **SECRETS})
    world = World(settings, open_store(settings.database.get_secret_value()))
    filled(world)
    environment = {**os.environ, **SECRETS, "OPENBLAS_NUM_THREADS": "1"}
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "opmon", "-vv", "serve", "-c", str(path)],
            cwd=folder, env=environment, stdout=said, stderr=said, umask=0,
        )  # fmt: skip
    made = Attacked(folder, world, f"http://127.0.0.1:{web}", f"http://127.0.0.1:{ingest}", process)
    made.tokens = {role: world.invite(role, role) for role in ROLES}
    made.tokens["limited"] = world.invite("limited", "operator", monitors=["prices"])
    made.tokens["hostile"] = world.invite(HOSTILE[1], "operator")
    try:
        ready(made)
        for role in made.tokens:  # who is known is not held up by the wrong tokens of others
            assert made.client(role).get(f"{API}/me").status_code == 200
        yield made
    finally:
        process.terminate()
        process.wait(60)


def ready(made: Attacked) -> None:
    """Wait until both ports answer."""
    end = time.monotonic() + LONGEST
    for url in (made.url, made.ingest):
        while True:
            try:
                httpx.get(f"{url}/healthz", timeout=5)
                break
            except httpx.TransportError:
                assert made.process.poll() is None, made.said
                assert time.monotonic() < end, made.said
                time.sleep(0.1)


def filled(world: World) -> None:
    """Rounds, tasks, labels, events and audit entries, with hostile text wherever production or people write."""

    def payload(k: int) -> dict[str, Any]:
        return {f"<b>{k}": HOSTILE[k % len(HOSTILE)], "text": HOSTILE[(k + 1) % len(HOSTILE)], "n": k}

    live_through(
        world.store,
        Past("digits", 12, drop=0.4),
        Past("prices", 5, classes=(), unit="<b>€", problem="regression", waits=False, rule=None),
        Past("hostile", 12, drop=0.5, model=SCRIPT, classes=tuple(f"{k}{text}"[:60] for k, text in enumerate(HOSTILE)),
             payload=payload, rule="floor"),
    )  # fmt: skip
    world.ask("pictures", [{"picture": encoded(picture(k)), "age": k} for k in range(8)])
    world.ask("hostile", [{"text": text, text: text} for text in HOSTILE])
    from datetime import UTC, datetime

    with world.store.write() as connection:
        note(connection, Entry(datetime.now(UTC), Act.REFUSED, SCRIPT, "token", SCRIPT, None, SCRIPT))
