"""The pages as a guest of another application, as MLflow's server holds them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
import yaml
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

from opmon import mlflow_app
from opmon.errors import ConfigError
from opmon.web.guards import Message, Receive, Scope, Send, SideBySide
from opmon.web.server import CALLS
from tests.made_once import new_opmon_database
from tests.patience import LONGEST
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

Guests = Callable[..., httpx.AsyncClient]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    database = new_opmon_database(tmp_path / "opmon.db")
    monitors = {"sinking": monitor(classes=list(DIGITS), rules=[FLOOR])}
    (tmp_path / "opmon.yaml").write_text(yaml.safe_dump({"database": database, "monitors": monitors}))
    monkeypatch.setenv("OPMON_CONFIG", str(tmp_path / "opmon.yaml"))
    made = World.of(database, tmp_path, monitors)
    live_through(made.store, Past("sinking", 12, drop=0.4))
    return made


@pytest.fixture
def guest_of(world: World) -> Guests:
    own = PlainTextResponse("the host's own")

    def guest(prefix: str = "", client: str = "127.0.0.1", host: str = "127.0.0.1") -> httpx.AsyncClient:
        app = FastAPI(routes=[Mount("/", own)])
        transport = httpx.ASGITransport(mlflow_app.with_pages(app, prefix), client=(client, 4000))
        return httpx.AsyncClient(transport=transport, base_url=f"http://{host}:5000")

    return guest


def run(work: Callable[[], object]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


@pytest.mark.parametrize("prefix", ["", "/team"])
def test_every_link_stays_below_the_prefix(guest_of: Guests, prefix: str) -> None:
    async def work() -> None:
        async with guest_of(prefix) as browser:
            moved = await browser.get(f"{prefix}/opmon")
            assert moved.headers["location"] == f"{prefix}/opmon/"
            asked = await browser.get(f"{prefix}/opmon/monitors/sinking")
            assert asked.headers["location"] == f"{prefix}/opmon/sign-in?next=/monitors/sinking"
            done = await browser.post(f"{prefix}/opmon/sign-in", data={"name": "olga", "next": "/monitors/sinking"})
            assert done.headers["location"] == f"{prefix}/opmon/monitors/sinking"
            assert f"Path={prefix}/opmon/" in done.headers["set-cookie"]
            for path in ("/", "/monitors/sinking", "/monitors/sinking/rounds/11", "/label", "/docs/pages"):
                page = await browser.get(f"{prefix}/opmon{path}")
                assert page.status_code == 200, path
                links = set(re.findall(r'(?:href|src|action|data-href)="(/[^"]*)"', page.text)) - {prefix or "/"}
                links -= {each for each in links if each.startswith(f"{prefix}/#/runs/")}  # MLflow's own pages
                assert links, path
                assert all(each.startswith(f"{prefix}/opmon/") for each in links), (path, links)
                for each in links:
                    if "/static/" in each:
                        assert (await browser.get(each)).status_code == 200, each
            told = await browser.get(f"{prefix}/opmon/api/v1/monitors/sinking/rounds/11/failures")
            assert told.status_code == 200
            for path in ("/healthz", "/readyz", "/metrics"):
                assert (await browser.get(f"{prefix}/opmon{path}")).status_code == 200, path
            assert (await browser.get(f"{prefix}/opmon/api/v1/nothing")).json() == {"error": "nothing has this address"}

    run(work)


def test_what_is_the_hosts_stays_the_hosts(guest_of: Guests) -> None:
    async def work() -> None:
        async with guest_of() as browser:
            for path in ("/", "/own", "/label", "/opmonitor", "/api/v1/status"):
                assert (await browser.get(path)).text == "the host's own", path

    run(work)


@pytest.mark.parametrize(("client", "host"), [("10.0.0.7", "127.0.0.1"), ("127.0.0.1", "10.0.0.1")])
def test_a_name_is_enough_on_this_machine_alone(guest_of: Guests, client: str, host: str) -> None:
    """Whatever the host of the pages listens on, and whatever whoever asks says of it."""

    async def work() -> None:
        async with guest_of(client=client, host=host) as browser:
            headers = {"opmon-annotator": "mallory", "host": "127.0.0.1:5000"}
            assert (await browser.get("/opmon/api/v1/status", headers=headers)).status_code == 403
        async with guest_of() as near:
            assert (await near.get("/opmon/api/v1/status", headers=headers)).status_code == 200

    run(work)


def test_behind_a_proxy_a_name_is_not_enough(guest_of: Guests, world: World, tmp_path: Path) -> None:
    plain = yaml.safe_load((tmp_path / "opmon.yaml").read_text())
    (tmp_path / "opmon.yaml").write_text(yaml.safe_dump({**plain, "web": {"url": "https://mlflow.example.com/opmon"}}))

    async def work() -> None:
        async with guest_of() as browser:
            refused = await browser.get("/opmon/api/v1/me", headers={"opmon-annotator": "eve"})
            assert refused.status_code == 403
            assert "opmon annotators add NAME" in refused.json()["error"]
            own = {"authorization": f"Bearer {world.invite('ann')}"}
            assert (await browser.get("/opmon/api/v1/me", headers=own)).status_code == 200

    run(work)


def test_tokens_and_roles_count_as_anywhere(guest_of: Guests, world: World) -> None:
    annotator, viewer = world.invite("ann"), world.invite("vic", "viewer")

    async def work() -> None:
        async with guest_of(client="10.0.0.7", host="mlflow.example.com") as browser:
            for token, status in ((annotator, 403), (viewer, 200)):
                asked = await browser.get("/opmon/monitors/sinking", headers={"authorization": f"Bearer {token}"})
                assert asked.status_code == status
            act = "/opmon/api/v1/events/sinking-11/acknowledge"
            refused = await browser.post(act, json={}, headers={"authorization": f"Bearer {viewer}"})
            assert refused.status_code == 403

    run(work)


def test_bodies_that_do_not_come_keep_nobody_waiting(guest_of: Guests) -> None:
    async def never() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def work() -> None:
        async with guest_of() as browser:
            slow = [asyncio.create_task(browser.post("/opmon/sign-in", content=never())) for _ in range(2 * CALLS)]
            await asyncio.sleep(0)
            answer = await asyncio.wait_for(browser.get("/opmon/healthz"), LONGEST)
            assert answer.status_code == 200
            assert not any(each.done() for each in slow)
            for each in slow:
                each.cancel()

    run(work)


def test_an_answer_that_is_not_read_keeps_nobody_waiting() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def work() -> None:
        unread, read, pages = asyncio.Event(), asyncio.Event(), SideBySide(app, 1)

        async def held(_: Message) -> None:
            unread.set()
            await read.wait()

        first = asyncio.create_task(pages({}, nothing, held))
        await unread.wait()
        await asyncio.wait_for(pages({}, nothing, taken), LONGEST)
        read.set()
        await first
        await asyncio.wait_for(pages({}, nothing, taken), LONGEST)
        assert pages._turns._value == 1, "a turn ends once"

    async def nothing() -> Message:
        return {}

    async def taken(_: Message) -> None:
        pass

    run(work)


def test_another_server_is_refused_with_the_way_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MLFLOW_SGI_NAME", "gunicorn")
    with pytest.raises(ConfigError, match="leave out --gunicorn-opts, or serve the pages"):
        mlflow_app.create_app()
