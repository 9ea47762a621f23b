"""The pages inside a real ``mlflow server``, beside MLflow's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser

from tests.browser.conftest import Watched
from tests.made_once import new_mlflow_store
from tests.registry.conftest import Server as Mlflow
from tests.registry.conftest import find_port
from tests.web.past import watched_monitors, watched_world


class Inside(Mlflow):
    """An ``mlflow server`` with opmon's pages in it."""

    @classmethod
    def start(cls, folder: Path) -> Inside:
        watched_world(folder)
        configuration = {"database": f"sqlite:///{folder / 'opmon.db'}", "monitors": watched_monitors()}
        (folder / "opmon.yaml").write_text(yaml.safe_dump(configuration))
        port = find_port()
        command = [sys.executable, "-m", "mlflow", "server", "--app-name", "opmon", "--workers", "1"]
        command += ["--port", str(port), "--backend-store-uri", new_mlflow_store(folder)]
        environment = os.environ | {
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "OPMON_CONFIG": str(folder / "opmon.yaml"),
        }
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
            )
        server = cls(process, f"http://127.0.0.1:{port}")
        server._wait(folder / "server.log")
        return server

    @property
    def url(self) -> str:
        return self.uri


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    made = Inside.start(tmp_path_factory.mktemp("inside"))
    yield made
    made.kill()


def test_the_pages_work_there_and_mlflows_own_are_untouched(browser: Browser, server: Inside, watched: Watched) -> None:
    context = browser.new_context(base_url=server.url)
    context.set_default_timeout(30_000)
    page = context.new_page()
    watched.watch(page)
    page.goto("/opmon")
    page.fill("#name", "olga")
    page.click("text=Sign in >> nth=-1")
    page.wait_for_selector("text=What needs a person")
    page.click("#monitors >> text=sinking")
    page.wait_for_selector("text=Why it is degraded")
    page.click("text=Robustness")
    page.fill("#q", "zoom > 4")
    page.keyboard.press("Enter")
    page.wait_for_selector("td.asked")
    page.goto("/opmon/monitors/sinking")
    page.locator(".events input[name=note]").first.fill("rolled back")
    page.locator("button[value=acknowledge]").first.click()
    page.wait_for_selector("text=Taken on by olga")
    page.goto("/opmon/label/sinking")
    page.wait_for_selector("#task:not([hidden])")
    page.keyboard.press("3")
    page.wait_for_selector("#saved[data-state=saved]")
    page.goto("/opmon/")
    own = context.new_page()  # what MLflow's own pages ask for is theirs to say
    page.close()
    own.goto("/")
    own.wait_for_selector("text=Experiments")
    assert "opmon" not in own.content().lower()
    context.close()
