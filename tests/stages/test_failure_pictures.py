from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from opmon.config import MonitorSettings, Settings
from opmon.reports.failures import Failure
from opmon.stages.failure_pictures import draw_failures

RED, BLANK = (200, 10, 10), (208, 212, 218)


def png() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (8, 8), RED).save(content, "PNG")
    return content.getvalue()


def watching(folder: Path, **changes: Any) -> MonitorSettings:
    monitor = {"model": "models:/m/1", "source": {"path": "in/"}, "sampler": {"type": "srs"}} | changes
    return Settings.from_mapping({"monitors": {"m": monitor}}, folder).monitor("m")


def failures(*photos: Any) -> list[Failure]:
    return [Failure(f"a{i}", "cat", "dog", payload={"photo": photo, "note": "x"}) for i, photo in enumerate(photos)]


def tiles(path: Path, count: int) -> list[tuple[int, ...]]:
    """The colour in each tile, away from its middle, where a word may stand."""
    sheet = np.asarray(Image.open(path).convert("RGB"))
    return [tuple(sheet[12 + 90, 12 + i * 116 + 90].tolist()) for i in range(count)]


@pytest.mark.parametrize(
    "cell",
    ["one.png", {"bytes": None, "path": "one.png"}, {"base64": base64.b64encode(png()).decode()}],
    ids=["path", "datasets", "bytes"],
)
def test_pictures_are_shown_however_the_log_holds_them(tmp_path: Path, cell: Any) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.png").write_bytes(png())
    settings = watching(tmp_path, inputs={"image": {"column": "photo", "folder": "photos/"}})
    content, shown = draw_failures(settings, failures(cell, "gone.png", "../../etc/passwd"), tmp_path / "out.png")
    assert shown == 3
    assert content == (tmp_path / "out.png").read_bytes()
    assert tiles(tmp_path / "out.png", 3) == [RED, BLANK, BLANK]


def test_the_column_that_annotators_see_comes_first(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(png())
    settings = watching(tmp_path, columns={"image": "photo"}, inputs={"image": {"column": "small", "folder": "."}})
    assert draw_failures(settings, failures("one.png"), tmp_path / "out.png")[1] == 1


@pytest.mark.parametrize("cell", ["gone.png", None, "https://example.com/a.png", 3])
def test_a_table_is_left_where_no_picture_can_be_had(tmp_path: Path, cell: Any) -> None:
    settings = watching(tmp_path, columns={"image": "photo"})
    assert draw_failures(settings, failures(cell, cell), tmp_path / "out.png") == (None, 0)


def test_what_is_no_picture_is_not_shown_as_one(tmp_path: Path) -> None:
    assert draw_failures(watching(tmp_path), failures([1.0] * 9), tmp_path / "out.png") == (None, 0)
    assert draw_failures(watching(tmp_path), failures([0.5] * 64), tmp_path / "out.png")[1] == 1
    assert draw_failures(watching(tmp_path), [], tmp_path / "out.png") == (None, 0)
