"""A folder of pictures is a log of its own: each file is one row."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from opmon.errors import InputError, SourceError
from opmon.sources.files import Files
from opmon.testing.sources import check_source

HOUR = 3600.0


def picture(shade: int, size: int = 8, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(shade).integers(0, 255, (size, size, 3), np.uint8)
    Image.fromarray(noise).save(stream, kind)
    return stream.getvalue()


def test_each_picture_is_a_row_small_and_large_ones_and_what_folders_say(log) -> None:  # type: ignore[no-untyped-def]
    content = {f"day=1/{number:03}.png": picture(number) for number in range(40)}
    content |= {"day=2/a.JPG": picture(7, kind="JPEG"), "day=2/large.png": picture(8, 200)}
    for age, (part, each) in enumerate(content.items()):
        log.write(part, each, age=100 - age)
    log.write("labels.csv", "x\n1\n")
    files = log.files(format="pictures")
    expected = pa.table({"file": list(content), "image": list(content.values())})
    check_source(files, expected, ordered=False)
    (first, *_) = files.read(files.pending({}), ["file", "day", "modified"])
    row = first.rows.to_pylist()[0]
    assert (row["file"], row["day"], row["modified"].tzinfo is not None) == ("day=1/000.png", 1, True)
    assert [batch.rows.num_rows for batch in log.files().read(log.files().pending({}))] == [1], "not by themselves"


def test_a_picture_that_is_being_written_waits_and_one_that_never_ends_is_damaged(log, drain) -> None:  # type: ignore[no-untyped-def]
    log.write("a.png", picture(1), age=10)
    log.write("b.png", picture(2)[:-20])
    log.write("c.jpg", b"")
    positions: dict[str, str] = {}
    files = log.files(format="pictures")
    assert [row["file"] for row in drain(files, positions)] == ["a.png"]
    log.write("b.png", picture(2))
    assert [row["image"] for row in drain(files, positions)] == [picture(2)]
    log.write("c.jpg", b"", age=2 * HOUR)
    with pytest.raises(SourceError, match=r"c\.jpg is no whole picture"):
        files.pending(positions)
    assert [flaw.part for flaw in log.files(format="pictures", broken="quarantine").flaws(positions)] == ["c.jpg"]


@pytest.mark.parametrize("kind", ["WEBP", "GIF", "BMP", "TIFF"])
def test_a_picture_whose_kind_has_no_mark_at_its_end_waits_until_it_is_left_alone(log, drain, kind) -> None:  # type: ignore[no-untyped-def]
    part, files, positions = f"a.{kind.lower()}", log.files(format="pictures"), dict[str, str]()
    log.write(part, picture(1, 40, kind)[:300])
    assert drain(files, positions) == []
    log.write(part, picture(1, 40, kind), age=30)
    assert drain(files, positions) == []
    log.age(part, 100)
    assert [row["image"] for row in drain(files, positions)] == [picture(1, 40, kind)]
    assert files.pending(positions) == []


def test_a_picture_with_something_behind_it_is_read_when_nobody_writes_to_it(log, drain) -> None:  # type: ignore[no-untyped-def]
    content = {"a.jpg": picture(1, kind="JPEG") + bytes(5000), "b.png": picture(2) + bytes(5000)}
    for part, each in content.items():
        log.write(part, each, age=HOUR - 100)
    files = log.files(format="pictures")
    assert files.pending({}) == []
    for part in content:
        log.age(part, HOUR + 100)
    assert {row["file"]: row["image"] for row in drain(files, {})} == content


def test_a_picture_in_the_place_of_another_is_an_error_and_a_touched_one_is_not(log, drain) -> None:  # type: ignore[no-untyped-def]
    log.write("a.png", picture(1), age=10)
    positions: dict[str, str] = {}
    files = log.files(format="pictures")
    drain(files, positions)
    log.write("a.png", picture(1))
    assert drain(files, positions) == []
    log.write("a.png", picture(2))
    with pytest.raises(SourceError, match="written again after it was read"):
        files.pending(positions)


def test_an_unknown_format_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pictures"):
        Files(str(tmp_path), format="images")  # type: ignore[arg-type]
