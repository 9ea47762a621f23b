"""The python that runs a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opmon.abc import Runnable
from opmon.errors import ModelError
from opmon.scoring.flavor.environment import python_of


def model(folder: Path, requirements: str | None = "nothing-at-all==1.0\n") -> Runnable:
    file = folder / "requirements.txt"
    if requirements is not None:
        file.write_text(requirements)
    return Runnable(folder / "serve.py", folder, None if requirements is None else file, "3.11.7")


def uv(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A tool of that name which notes how it was called."""
    tool = folder / "bin" / "uv"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >> {folder / "calls"}\n{script}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    return folder / "calls"


def test_opmons_own_python_or_another(tmp_path: Path) -> None:
    assert python_of("current", model(tmp_path), tmp_path) == sys.executable
    assert python_of("/opt/python", model(tmp_path), tmp_path) == "/opt/python"


def test_an_environment_is_built_once_and_again_where_the_first_try_was_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = uv(tmp_path, monkeypatch, f"test -e {tmp_path}/well || test $1 = venv")
    with pytest.raises(ModelError, match=r"cannot be built: no reason was given \(uv pip install\)"):
        python_of("uv", model(tmp_path), tmp_path)
    (tmp_path / "well").touch()
    for place in (tmp_path / "environments").glob("*.lock"):
        place.with_suffix("").mkdir(exist_ok=True)  # as the real tool does
    built = python_of("uv", model(tmp_path), tmp_path)
    assert built.startswith(str(tmp_path / "environments"))
    assert python_of("uv", model(tmp_path), tmp_path) == built
    lines = calls.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["venv", "pip", "venv", "pip"]
    assert "--python 3.11" in lines[0]
    assert lines[3].endswith(f"-r {tmp_path / 'requirements.txt'} pyarrow pandas pyyaml")


def test_what_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv(tmp_path, monkeypatch, "echo 'no solution found' >&2; exit 1")
    with pytest.raises(ModelError, match=r"logged without requirements.txt"):
        python_of("uv", model(tmp_path, None), tmp_path)
    with pytest.raises(ModelError, match=r"no solution found \(uv venv --quiet\).*scoring.env"):
        python_of("uv", model(tmp_path), tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelError, match="uv is not installed: run pip install uv"):
        python_of("uv", model(tmp_path), tmp_path)
