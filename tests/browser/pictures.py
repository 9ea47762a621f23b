"""Takes the pictures of the pages that the README shows.

    python tests/browser/pictures.py [FOLDER]

Serves monitors with a past, opens their pages in Chromium, and writes monitors.png and monitor.png, in few colours, to
FOLDER (.github by default). The numbers are made up; the pages are the real ones.
"""

from __future__ import annotations

import io
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from opmon.web.server import Server
from tests.browser.conftest import ARGUMENTS, chromium
from tests.made_once import new_opmon_database
from tests.web.past import FLOOR, Past, live_through
from tests.web.world import DIGITS, World, monitor

WIDE, COLOURS = 1200, 64
SHOWN = {"monitors": ("/", 690), "monitor": ("/monitors/loan-approval", 1120)}


def world(folder: Path) -> World:
    """Five models: one has become worse, one has recovered, one estimates prices."""
    rule = {**FLOOR, "name": "accuracy-floor"}
    names = ("loan-approval", "support-intent", "returns-photo", "churn")
    monitors = {name: monitor(model=f"models:/{name}@champion", classes=list(DIGITS), rules=[rule]) for name in names}
    monitors["delivery-time"] = monitor(model="models:/delivery-time@champion", problem="regression", unit="min")
    made = World.of(new_opmon_database(folder / "opmon.db"), folder, monitors)
    now = datetime.now(UTC).replace(microsecond=0)

    def past(name: str, rounds: int, minutes: int, **more: object) -> Past:
        return Past(name, rounds, model=name, until=now - timedelta(minutes=minutes), rule=rule["name"], **more)  # type: ignore[arg-type]

    live_through(
        made.store,
        past("loan-approval", 60, 3, accuracy=0.95, drop=0.16, delivered=True),
        past("support-intent", 48, 5, accuracy=0.965, drop=0.0, waits=False, delivered=True),
        past("returns-photo", 36, 7, accuracy=0.97, drop=0.0, delivered=True),
        past("churn", 30, 8, accuracy=0.96, drop=0.0, waits=False, delivered=True),
        Past("delivery-time", 30, until=now - timedelta(minutes=6), classes=(), unit="min", problem="regression",
             waits=False, rule=None),
    )  # fmt: skip
    return made


def kept(page: Page, path: Path) -> None:
    """The top of a page, in few colours: a text in black on white needs no more."""
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".github")
    with tempfile.TemporaryDirectory() as temporary:
        made = world(Path(temporary))
        with Server(made.settings, made.store) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            page = browser.new_page(base_url=server.url, viewport={"width": WIDE, "height": 700}, locale="en-GB")
            page.goto("/sign-in")
            page.fill("#name", "olga")
            page.click("text=Sign in >> nth=-1")
            for name, (path, height) in SHOWN.items():
                page.set_viewport_size({"width": WIDE, "height": height})
                page.goto(path)
                kept(page, folder / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
