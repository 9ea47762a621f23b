"""The pages behind a proxy that puts a prefix before their paths."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.made_once import new_opmon_database
from tests.web.world import World


@pytest.mark.parametrize("taken_away", [True, False])
def test_links_have_the_prefix_whether_the_proxy_takes_it_away_or_not(tmp_path: Path, taken_away: bool) -> None:
    world = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, url="https://example.com/team/opmon")
    before, token = "" if taken_away else "/team/opmon", world.invite("ann")
    with (
        world.served() as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.address[1]}") as browser,
    ):
        asked = browser.get(f"{before}/label")
        assert asked.headers["location"] == "/team/opmon/sign-in?next=/label"
        form = browser.get(f"{before}/sign-in").text
        assert 'action="/team/opmon/sign-in"' in form
        done = browser.post(f"{before}/sign-in", data={"token": token, "next": "/label"})
        assert done.headers["location"] == "/team/opmon/label"
        assert "Path=/team/opmon/; SameSite=strict; Secure" in done.headers["set-cookie"]
        style = form.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert style.startswith("/team/opmon/static/")
        assert browser.get(before + style.removeprefix("/team/opmon")).status_code == 200


@pytest.mark.parametrize("before", ["", "/team/opmon"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_answer_below_the_prefix(tmp_path: Path, before: str, path: str) -> None:
    world = World.of(new_opmon_database(tmp_path / "opmon.db"), tmp_path, url="https://example.com/team/opmon")
    token = {"authorization": f"Bearer {world.invite('vera', 'viewer')}"}
    with world.served() as server, httpx.Client(base_url=f"http://127.0.0.1:{server.address[1]}") as prober:
        assert prober.get(f"{before}{path}", headers=token).status_code == 200
        assert prober.get(f"{before}{path}").status_code == (401 if path == "/metrics" else 200)
