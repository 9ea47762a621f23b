"""Where opmon runs, and what it says elsewhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path


def without_locks(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What Python says of ``code`` where the module ``fcntl`` is missing, as on Windows."""
    script = f"import sys; sys.modules['fcntl'] = None\n{code}"
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)


ONE_BY_ONE = """
from opmon.cli import main
for command in sys.argv[1].split():
    try:
        main([command, "-c", sys.argv[2]])
    except SystemExit as end:
        print(command, end.code)
        print("--", file=sys.stderr, flush=True)
"""


def test_windows_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text("monitors: {m: {model: 'models:/m/1', source: {path: in/}, sampler: {type: srs}}}")
    told = without_locks(ONE_BY_ONE, "run check serve", str(path))
    assert told.stdout.splitlines() == ["run 2", "check 2", "serve 2"]
    said = told.stderr.removesuffix("--\n").split("--\n")
    assert len(said) == 3
    assert all(each.startswith("opmon: opmon runs on Linux and macOS") for each in said)
    assert "Traceback" not in told.stderr


def test_samplers_and_estimators_need_no_locks() -> None:
    told = without_locks("from opmon.samplers import SimpleRandom; from opmon.estimators import combine")
    assert told.returncode == 0


def test_the_dependencies_offer_no_platform_that_is_refused() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert not [each for each in project["dependencies"] if "win32" in each]
