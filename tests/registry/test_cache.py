"""Versions on this machine come and go while several processes use them."""

from __future__ import annotations

import os
import random
import time
from datetime import timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from opmon.registry import MlflowRegistry, cache
from tests.forked import forks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four versions that nobody used today, a download that was killed long ago and one that goes on."""
    for name in ("1-aaaaaaaa", "2-bbbbbbbb", "2-cccccccc-converted", "10-dddddddd", ".fetching-old", ".fetching-new"):
        path = tmp_path / "digits" / name
        path.mkdir(parents=True)
        (path / "model.onnx").write_bytes(b"onnx")
        os.utime(path, (time.time() - 200_000,) * 2)
    os.utime(tmp_path / "digits" / ".fetching-new")
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.name for path in (folder / "digits").iterdir()}


def test_what_is_not_needed_goes(folder: Path) -> None:
    assert cache.versions(folder, "digits") == {"1", "2", "10"}
    assert cache.forget(folder, "digits", keep={"2"}) == ["1-aaaaaaaa", "10-dddddddd"]
    assert left(folder) == {"2-bbbbbbbb", "2-cccccccc-converted", ".fetching-new"}


def test_what_was_just_asked_for_stays(folder: Path) -> None:
    assert cache.take(folder / "digits" / "1-aaaaaaaa", Path("model.onnx"))
    assert not cache.take(folder / "digits" / "3-eeeeeeee", Path("model.onnx"))
    assert cache.forget(folder, "digits", keep=set()) == ["10-dddddddd", "2-bbbbbbbb", "2-cccccccc-converted"]
    assert "1-aaaaaaaa" in left(folder)


def test_a_model_without_versions_here(tmp_path: Path) -> None:
    assert cache.versions(tmp_path, "digits") == set()
    assert cache.forget(tmp_path, "digits", keep={"1"}) == []


def _forget_for_ever(folder: Path, unused: float, stop: Event) -> None:
    while not stop.is_set():
        cache.forget(folder, "digits", keep=set(), unused=timedelta(seconds=unused))
        time.sleep(0.001)


def test_two_processes_never_take_a_version_from_each_other(registry: MlflowRegistry, tmp_path: Path) -> None:
    """One removes whatever was not used for a second; the other asks, reads soon after, and always finds it whole."""
    version = registry.resolve("models:/digits@champion")
    whole = registry.fetch_onnx(version, tmp_path).read_bytes()
    context = forks()
    stop, dice, gone = context.Event(), random.Random(0), 0
    other = context.Process(target=_forget_for_ever, args=(tmp_path, 1.0, stop))
    other.start()
    try:
        for turn in range(16):
            asked = time.monotonic()
            path = registry.fetch_onnx(version, tmp_path)
            time.sleep(dice.uniform(0, 0.1))
            try:
                assert path.read_bytes() == whole
            except FileNotFoundError:  # on a busy machine a second may be over before it is read
                assert time.monotonic() - asked >= 1.0
            time.sleep(dice.uniform(0, 0.1))
            while turn % 4 == 0 and cache.versions(tmp_path, "digits"):
                time.sleep(0.02)
            gone += turn % 4 == 0
    finally:
        stop.set()
        other.join()
    assert gone == 4, "it was removed again and again"
