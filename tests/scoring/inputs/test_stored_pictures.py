"""Pictures in an object store: fetched from the named folder alone, and one that is not there costs its row."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import UnavailableError
from opmon.scoring.inputs import encoded as module
from opmon.scoring.inputs.images import ImageInput
from tests.scoring.inputs.test_readers import FIRST, batch, encoded
from tests.test_stores import put

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 8, 6, 3)).astype(np.uint8)


@pytest.fixture
def stored(bucket: str) -> str:
    for number, array in enumerate(PIXELS):
        put(bucket, f"photos/{number}.png", encoded(array))
    put(bucket, "secret/0.png", encoded(PIXELS[0]))
    return bucket


def test_names_and_urls_below_the_folder_are_fetched_and_nothing_else(stored: str) -> None:
    cells = [
        "0.png",
        f"{stored}/photos/1.png",
        f"{stored.replace('s3://', 's3a://')}/photos/2.png",
        "3.png",
        f"{stored}/secret/0.png",
        "../secret/0.png",
        "https://host/0.png",
        None,
    ]
    fed = ImageInput("p", folder=f"{stored}/photos").reader([FIRST]).tensors(batch(p=cells))
    assert fed.rows.tolist() == [0, 1, 2]
    assert fed.tensors["x"] == pytest.approx(PIXELS.transpose(0, 3, 1, 2) / 255, abs=1e-6)
    told = [fed.rejected[row].replace(stored, "s3://bucket") for row in range(3, 8)]
    assert told == [
        "column 'p' names an object that is not there",
        "column 'p' names an object outside of s3://bucket/photos",
        "column 'p' names an object outside of s3://bucket/photos",
        "column 'p' holds an address (https://…), and pictures are read from inputs.image.folder alone",
        "column 'p' is empty",
    ]


def test_a_picture_that_is_too_large_is_not_fetched(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 20)
    fed = ImageInput("p", folder=stored).reader([FIRST]).tensors(batch(p=["photos/0.png"]))
    assert fed.rejected == {0: "column 'p' names an object above 20 bytes"}


def test_urls_without_a_folder_say_which_key_is_missing(stored: str) -> None:
    fed = ImageInput("p").reader([FIRST]).tensors(batch(p=[f"{stored}/photos/0.png"]))
    assert "say with inputs.image.folder below which folder" in fed.rejected[0]


def test_a_store_that_is_away_stops_the_round_and_not_its_rows(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="does not answer"):
        ImageInput("p", folder=stored).reader([FIRST]).tensors(batch(p=[f"photos/{n}.png" for n in range(3)]))
