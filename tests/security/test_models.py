"""Models that read other files, never end, or ask for more than there is: refused in words, in bounded memory."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from opmon.errors import EndlessModel, ModelError
from opmon.scoring import session as sessions
from opmon.scoring.scorer import Scorer
from opmon.types import Batch
from tests.security import graphs

OUT = ("../secret.bin", "/etc/passwd", "a/../../secret.bin", "link.bin", "folder/secret.bin", "..\\secret.bin", "",
       "file:///etc/passwd", "pipe", ".")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model, with ways out of it."""
    made = tmp_path / "model"
    made.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 96)
    (made / "link.bin").symlink_to(tmp_path / "secret.bin")
    (made / "folder").symlink_to(tmp_path)
    os.mkfifo(made / "pipe")
    return made


@pytest.fixture(autouse=True)
def memory_is_bounded() -> object:
    """What was taken at most, of any moment, is told by the system."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def scored(path: Path) -> None:
    """An error where the model runs on none of some inputs."""
    scorer = Scorer.open(path, "classification", device="cpu")
    rows = np.ones((8, 6), np.float32)
    batch = Batch(0, 0, pa.record_batch({"x": pa.array(rows.tolist(), pa.list_(pa.float32()))}))
    for told in scorer.score([batch]):
        assert not len(told.rows)
        raise ModelError(told.rejected[0])


@pytest.mark.parametrize("place", graphs.PLACES)
@pytest.mark.parametrize("location", OUT)
def test_weights_outside_of_the_models_folder(folder: Path, place: str, location: str) -> None:
    path = graphs.saved(folder, graphs.PLACES[place](location))
    with pytest.raises(ModelError, match=r"outside of its own folder|is not beside it"):
        scored(path)


GREEDY = {
    "terabytes": graphs.giant([1 << 40]),
    "beyond numbers": graphs.giant([1 << 40, 1 << 40]),
    "negative": graphs.giant([-1]),
    "two gigabytes claimed": graphs.claimed([1 << 15, 1 << 14]),
    "negative weights": graphs.claimed([-6, 4]),
    "endless weights": graphs.claimed([1 << 62, 1 << 62]),
    "nested": graphs.deep(40),
    "nested deeply": graphs.deep(20_000),
    "cut": graphs.giant([4])[:-9],
    "nonsense": b"\xff" * 10_000,
}


@pytest.mark.parametrize("name", GREEDY)
def test_models_that_ask_for_more_than_there_is(folder: Path, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(ModelError, match=r"cannot load|not an ONNX file|does not run|does not suffice") as told:
        scored(graphs.saved(folder, GREEDY[name]))
    assert time.monotonic() - began < 30
    assert len(str(told.value)) < 2000


def test_weights_that_are_said_to_be_longer_than_their_file(folder: Path) -> None:
    (folder / "w.bin").write_bytes(b"\0" * 96)
    weights = graphs.outside("w.bin", length=str(1 << 62))
    with pytest.raises(ModelError, match="w external data size mismatch"):
        scored(graphs.saved(folder, graphs.written([graphs.PRODUCT], [weights])))


def test_a_model_that_never_ends_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "RUN_SECONDS", 1.0)
    path = graphs.saved(folder, graphs.endless())
    began = time.monotonic()
    with pytest.raises(EndlessModel, match=r"did not end within 1 s on x float32\[.*is there a loop in it"):
        scored(path)
    assert time.monotonic() - began < 30
