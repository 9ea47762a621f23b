from __future__ import annotations

from pathlib import Path

import pytest

from opmon.cli import WRONG, main
from opmon.config import load
from opmon.demo.folder import Folder
from opmon.errors import InputError


def test_new_folder_is_made(tmp_path: Path):
    folder = Folder.prepare(tmp_path / "a" / "demo")
    assert folder.production.is_dir()


def test_empty_folder_is_taken(tmp_path: Path):
    assert Folder.prepare(tmp_path).path == tmp_path


def test_foreign_folder_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "opmon.db").write_text("mine")
    with pytest.raises(InputError, match="not made by the demo"):
        Folder.prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["opmon.db"]
    assert (tmp_path / "opmon.db").read_text() == "mine"


def test_foreign_folder_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--folder", str(tmp_path)])
    assert stopped.value.code == WRONG
    assert "name another folder" in capsys.readouterr().err


def test_file_is_refused(tmp_path: Path):
    (tmp_path / "demo").touch()
    with pytest.raises(InputError, match="is a file"):
        Folder.prepare(tmp_path / "demo")


def test_second_time_begins_anew_and_keeps_what_is_not_its_own(tmp_path: Path):
    folder = Folder.prepare(tmp_path / "demo")
    folder.configure(window_size=1, budget=1, threshold=0.9, drift_report=True, seed=0)
    (folder.path / "opmon.db").touch()
    (folder.production / "window-01.parquet").touch()
    (folder.path / "notes.txt").write_text("mine")
    Folder.prepare(folder.path)
    assert sorted(path.name for path in folder.path.iterdir()) == [
        ".opmon-demo",
        "mlartifacts",
        "notes.txt",
        "production",
    ]
    assert list(folder.production.iterdir()) == []


def test_link_is_removed_and_not_followed(tmp_path: Path):
    folder = Folder.prepare(tmp_path / "demo")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    folder.production.rmdir()
    folder.production.symlink_to(elsewhere)
    Folder.prepare(folder.path)
    assert (elsewhere / "precious").exists()
    assert not folder.production.is_symlink()


def test_configuration_is_sound(tmp_path: Path):
    folder = Folder.prepare(tmp_path / "demo")
    path = folder.configure(window_size=700, budget=70, threshold=0.9, drift_report=False, seed=3)
    monitor = load(path, environment={}).monitor("digits")
    assert (monitor.round.min_inputs, monitor.sampler.budget, monitor.drift.enabled, monitor.seed) == (
        700,
        70,
        False,
        3,
    )
