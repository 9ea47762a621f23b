"""Where opmon runs, and what it says elsewhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


def without_locks(code: str) -> subprocess.CompletedProcess[str]:
    """What Python says of ``code`` where the module ``fcntl`` is missing, as on Windows."""
    script = f"import sys; sys.modules['fcntl'] = None; {code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


@pytest.mark.parametrize("command", ["run", "check", "serve"])
def test_windows_is_refused_in_words(tmp_path: Path, command: str) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text("monitors: {m: {model: 'models:/m/1', source: {path: in/}, sampler: {type: srs}}}")
    told = without_locks(f"from opmon.cli import main; main(['{command}', '-c', {str(path)!r}])")
    assert told.returncode == 2
    assert told.stderr.startswith("opmon: opmon runs on Linux and macOS")
    assert "Traceback" not in told.stderr


def test_samplers_and_estimators_need_no_locks() -> None:
    told = without_locks("from opmon.samplers import SimpleRandom; from opmon.estimators import combine")
    assert told.returncode == 0


def test_the_dependencies_offer_no_platform_that_is_refused() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert not [each for each in project["dependencies"] if "win32" in each]
