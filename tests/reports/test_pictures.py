from __future__ import annotations

import io
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from opmon.errors import InputError
from opmon.reports.pictures import MAX_TILES, picture_grid

GREY = (208, 212, 218)


def encoded(size: tuple[int, int], colour: Any = (200, 30, 30), mode: str = "RGB", kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.new(mode, size, colour).save(content, format=kind)
    return content.getvalue()


def bomb(side: int) -> bytes:
    """A PNG of a few hundred bytes that claims ``side`` × ``side`` pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def sheet(images: list[Any], tmp_path: Path) -> np.ndarray:
    picture_grid(images, ["said 3, is 8"] * len(images), tmp_path / "grid.png")
    return np.asarray(Image.open(tmp_path / "grid.png"))


def tile(image: np.ndarray, index: int = 0) -> np.ndarray:
    left, top = 12 + (index % 8) * 116, 12 + (index // 8) * 136
    return image[top : top + 104, left : left + 104]


def test_digits_are_enlarged_pixel_by_pixel(tmp_path: Path) -> None:
    digits = load_digits().images[:10]
    image = sheet(list(digits), tmp_path)
    assert image.shape == (2 * 136 + 12, 8 * 116 + 12, 3)
    first = tile(image)[6::13, 6::13, 0]
    np.testing.assert_array_equal(first, np.round(digits[0] / 16 * 255))
    assert (image[120:134, 12:116] < 120).any(), "there is a caption"


@pytest.mark.parametrize(
    "picture",
    [
        np.full((5, 5), 1.0),
        np.full((5, 5, 1), 255, np.uint8),
        np.full((5, 5, 3), 1.0),
        np.full((3, 5, 5), 1.0),
        np.full((1, 5, 5), 1.0),
        np.full((1, 3, 5, 5), 1.0),
        np.full((5, 5, 4), 255, np.uint8),
        np.full(25, 1.0),
        [[1.0] * 5] * 5,
        [[255] * 5] * 5,
        np.full((2160, 3840, 3), 255, np.uint8)[:, 840:3000],
        encoded((50, 50), (255, 255, 255)),
        encoded((50, 50), 255, "L", "JPEG"),
        encoded((50, 50), 255, "L", "TIFF"),
    ],
    ids=range(14),
)
def test_every_form_of_a_white_picture_is_white(picture: Any, tmp_path: Path) -> None:
    assert tile(sheet([picture], tmp_path)).min() >= 250


def test_colours_stay(tmp_path: Path) -> None:
    image = sheet([encoded((40, 20))], tmp_path)
    assert tuple(tile(image)[52, 52]) == (200, 30, 30)
    assert tuple(tile(image)[5, 52]) == (240, 242, 245), "a wide picture is centred, not stretched"


def test_sixteen_bits_are_scaled_not_cut_off(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.fromarray(np.array([[0, 30_000], [30_000, 60_000]], dtype=np.uint16)).save(content, format="PNG")
    shown = tile(sheet([content.getvalue()], tmp_path))
    assert [shown[20, 20, 0], shown[20, 80, 0], shown[80, 80, 0]] == [0, 128, 255]


def test_a_photograph_is_reduced(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    photograph = Image.fromarray(rng.integers(0, 255, (2160, 3840, 3), dtype=np.uint8))
    content = io.BytesIO()
    photograph.save(content, format="JPEG")
    assert abs(int(tile(sheet([content.getvalue()], tmp_path))[52, 52].mean()) - 127) < 40


@pytest.mark.parametrize(
    "broken",
    [
        None,
        b"",
        b"not a picture",
        encoded((300, 300))[:100],
        bomb(8_000),
        bomb(60_000),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "text",
        {"a": 1},
        [[1, 2], [3]],
        np.zeros((0, 5)),
        np.zeros(7),
        np.zeros((2, 3, 4, 5, 6)),
        np.broadcast_to(np.uint8(0), (20_000, 20_000)),
        b"\0" * (33 * 1024 * 1024),
    ],
    ids=range(15),
)
def test_what_is_no_picture_becomes_a_grey_tile_with_a_word(broken: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        image = sheet([encoded((9, 9)), broken], tmp_path)
    assert tuple(tile(image, 1)[3, 3]) == GREY
    assert (tile(image, 1) < 100).any(), "there is a word"
    assert tuple(tile(image, 0)[52, 52]) == (200, 30, 30), "the others are shown"


def test_not_a_number_is_black(tmp_path: Path) -> None:
    picture = np.ones((4, 4))
    picture[0, 0], picture[3, 3] = np.nan, np.inf
    shown = tile(sheet([picture], tmp_path))
    assert shown[5, 5].max() == 0
    assert shown[100, 100].min() == 255
    assert tile(sheet([np.full((4, 4), np.nan)], tmp_path)).max() == 0


def test_many_pictures_are_bounded(tmp_path: Path) -> None:
    digits = list(load_digits().images) * 6
    assert picture_grid(digits, ["x"] * len(digits), tmp_path / "grid.png") == MAX_TILES
    assert Image.open(io.BytesIO((tmp_path / "grid.png").read_bytes())).size == (940, 1100)
    assert (tmp_path / "grid.png").stat().st_size < 300_000


def test_no_pictures_at_all(tmp_path: Path) -> None:
    assert picture_grid([], [], tmp_path / "grid.png") == 0
    assert Image.open(io.BytesIO((tmp_path / "grid.png").read_bytes())).size == (128, 148)


def test_captions_never_leave_their_tile(tmp_path: Path) -> None:
    hostile = ["said " + "w" * 500, "مرحبا\u202e بالعالم", "\U0001f600" * 50, "", "two\nlines", "<script>"]
    picture_grid([np.zeros((2, 2))] * 6, hostile, tmp_path / "grid.png")
    image = np.asarray(Image.open(tmp_path / "grid.png"))
    assert (image[:, 117:127] == 255).all(), "the gap between the first two tiles is empty"


def test_one_caption_per_picture(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 pictures and 1 captions"):
        picture_grid([None, None], ["x"], tmp_path / "grid.png")
