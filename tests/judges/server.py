"""A server that speaks the chat-completions protocol, on loopback, and lies in every way that tests want."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server does with a request."""

    status: int = 200
    content: str | None = '{"answer": "cat"}'
    """What the language model says; None: its body is ``raw``."""
    raw: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    drip: bool = False
    """The body comes byte by byte, with the pause before each."""


@dataclass
class Chat:
    """A running server: its address, and the requests it got."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(reply: Callable[[int, dict[str, Any]], Reply]) -> Iterator[Chat]:
    """A server on a free port; ``reply`` gets the number of the request, from 0, and its body."""
    lock, chat, over = threading.Lock(), Chat(""), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(chat.requests)
                chat.requests.append(body)
                chat.headers.append(dict(self.headers))
                chat.paths.append(self.path)
            answer = reply(number, body)
            told = {"choices": [{"message": {"role": "assistant", "content": answer.content}}]}
            raw = answer.raw if answer.content is None else json.dumps(told).encode()
            if not answer.drip:
                over.wait(answer.pause)
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(raw)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for byte in [raw] if not answer.drip else [bytes([each]) for each in raw]:
                if answer.drip:
                    over.wait(answer.pause)
                try:
                    self.wfile.write(byte)
                    self.wfile.flush()
                except OSError:
                    return

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def shown(body: dict[str, Any]) -> dict[str, Any]:
    """The input that a request shows."""
    content = body["messages"][1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    found: dict[str, Any] = json.loads(text)
    return found


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun
