"""A proxy before a real MLflow server that does to chosen requests what networks and servers do."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.patience import LONGEST

LOSE = "the request goes through, and the answer is lost"
STALL = "nothing is ever said"
DRIP = "the answer comes, a byte now and then"
LATE = "the request is held back, the line is cut, and it goes through when it is let go"
SLOW = "half a second goes by before the request goes through"
BUSY = "the request goes through, and a server in between says that it is busy"
CUT = "the line is cut before the request goes through"


@dataclass
class Rule:
    """What is done to requests whose "METHOD /path" matches, and to how many of them."""

    pattern: str
    what: str
    times: int = 10**9


@dataclass
class Proxy:
    """Forwards to ``server``, unless a rule says otherwise."""

    server: str
    rules: list[Rule] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    """How many requests each rule was applied to, by what it did."""
    seen: list[str] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    met_one: threading.Event = field(default_factory=threading.Event)
    uri: str = ""
    chance: Callable[[str], str | bool] | None = None
    """What is done to a request that no rule is about: nothing where it gives nothing."""

    def rule(self, pattern: str, what: str, times: int = 10**9) -> None:
        self.rules.append(Rule(pattern, what, times))

    def clear(self) -> None:
        """Be a good network again: those who wait are let go."""
        self.rules.clear()
        self.chance = None
        self.let_go.set()

    def _decide(self, line: str) -> str | None:
        for rule in self.rules:
            if rule.times and re.search(rule.pattern, line):
                rule.times -= 1
                self.met[rule.what] += 1
                self.met_one.set()
                return rule.what
        what = self.chance(line) if self.chance is not None else None
        if what:
            self.met[str(what)] += 1
            return str(what)
        return None

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        line = f"{handler.command} {handler.path}"
        self.seen.append(line)
        what = self._decide(line)
        if what == STALL:
            self.let_go.wait(60)
            return cut(handler)
        if what == CUT:
            return cut(handler)
        if what == SLOW:
            self.let_go.wait(0.5)
        if what == LATE:
            cut(handler)
            self.let_go.wait(60)
            self._forward(handler, body)
            return None
        status, headers, answer = self._forward(handler, body)
        if what == LOSE:
            return cut(handler)
        if what == BUSY:
            status, answer = 503, b"busy"
        handler.send_response(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        if what == DRIP:
            for byte in answer:
                handler.wfile.write(bytes([byte]))
                if self.let_go.wait(0.2):
                    return cut(handler)
        else:
            handler.wfile.write(answer)
        return None

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        to = urlsplit(self.server)
        connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=LONGEST)
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "accept-encoding"}
        connection.request(handler.command, handler.path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.getheaders(), answer


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Reset the connection: the client sees it at once, and cannot know what became of its request."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True
    handler.connection.close()


@contextmanager
def proxy_to(server: str) -> Iterator[Proxy]:
    proxy = Proxy(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                try:
                    proxy.handle(self)
                except (OSError, http.client.HTTPException):  # the server is gone
                    cut(self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass

    listener = Server(("127.0.0.1", 0), Handler)
    proxy.uri = f"http://127.0.0.1:{listener.server_port}"
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield proxy
    proxy.clear()
    listener.shutdown()
    listener.server_close()
