"""An endpoint at work, and a sender."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from opmon.config import Settings
from opmon.ingest.endpoint import Endpoint
from tests.patience import LONGEST

Send = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """The configuration of two monitors, of which one reads what is sent."""

    def make(**ingest: object) -> Settings:
        monitor = {"model": "models:/digits/1"}
        return Settings.from_mapping(
            {
                "ingest": {"listen": "127.0.0.1:0", **ingest},
                "monitors": {
                    "digits": {**monitor, "source": {"type": "ingest"}},
                    "others": {**monitor, "source": {"path": "production"}},
                },
            },
            tmp_path,
        )

    return make


@pytest.fixture
def endpoint(settings: Callable[..., Settings]) -> Iterator[Endpoint]:
    with Endpoint(settings(max_body=100_000)) as made:
        yield made


@pytest.fixture
def send(endpoint: Endpoint) -> Send:
    """Sends to the endpoint, each time over a connection of its own."""

    def post(
        body: object, kind: str = "application/json", to: str = "/v1/ingest/digits", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        told = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return ask_endpoint(endpoint, "POST", to, body if isinstance(body, bytes) else json.dumps(body).encode(), told)

    return post


@pytest.fixture
def ask() -> Callable[..., tuple[int, dict[str, Any]]]:
    return ask_endpoint


def ask_endpoint(
    endpoint: Endpoint, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(*endpoint.address, timeout=LONGEST)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
