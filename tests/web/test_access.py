"""One line says of each endpoint who may use it, and each endpoint keeps to its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter, FastAPI

import opmon
from opmon.errors import OpmonError
from opmon.web import access
from opmon.web.access import NEEDS, Need
from opmon.web.api.asking import Watcher
from tests.web.world import World

Clients = Callable[..., httpx.Client]
ROLES = ("annotator", "viewer", "operator")


def router_of(path: str) -> APIRouter:
    router = APIRouter()

    @router.get(path)
    def endpoint(person: Watcher) -> str:
        return person.name

    return router


def test_an_endpoint_without_a_line_is_a_fault_at_the_start() -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(router_of("/new"), prefix="/deep")
    assert list(access.guarded(app.routes)) == [("GET", "/deep/new", Need.WATCHES)]
    with pytest.raises(OpmonError, match="nobody said who may GET /deep/new"):
        access.require_stated(app.routes, {})
    with pytest.raises(OpmonError, match="is to be for operators, but lets in viewers"):
        access.require_stated(app.routes, {("GET", "/deep/new"): Need.ACTS})
    access.require_stated(app.routes, {("GET", "/deep/new"): Need.WATCHES})


def test_what_is_mounted_has_no_line() -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.mount("/files", FastAPI())
    with pytest.raises(OpmonError, match="nobody said who may any method of"):
        access.require_stated(app.routes, {})


@pytest.fixture(scope="module")
def shown() -> str:
    return (Path(opmon.__file__).parent / "docs" / "security.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("method", "path"), NEEDS)
def test_the_document_says_the_same(shown: str, method: str, path: str) -> None:
    assert f"| `{method} {path}` | {NEEDS[method, path]} |" in shown


def test_every_endpoint_lets_in_whom_its_line_names_and_nobody_else(world: World, client_of: Clients) -> None:
    clients = {role: client_of(world.invite(role, role)) for role in ROLES}
    nobody = client_of()
    for (method, path), need in NEEDS.items():
        address = re.sub(r"\{version\}", "x", re.sub(r"\{number\}|\{place\}", "1", path))
        address = re.sub(r"\{monitor\}", "digits", re.sub(r"\{(key|field:path|event|name)\}", "x", address))
        body = None if method == "GET" else {}
        told = nobody.request(method, address, json=body)
        if need is Need.NOTHING:
            assert told.status_code in (200, 303, 401, 403, 404), (path, told.status_code)
            continue
        assert told.status_code in (401, 303), (path, told.status_code)
        assert told.status_code == 401 or told.headers["location"].startswith("/sign-in"), path
        for role, client in clients.items():
            refused = client.request(method, address, json=body).status_code == 403
            assert refused is not need.lets(role), (method, path, role)
