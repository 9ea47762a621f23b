"""The python that runs a model: opmon's own, another one, or one that uv builds from the model's requirements."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from opmon import locks
from opmon.abc import Runnable
from opmon.errors import ModelError
from opmon.waiting import ends_within

log = logging.getLogger(__name__)

CURRENT, UV = "current", "uv"
_NEEDED = ("pyarrow", "pandas", "pyyaml")
"""The packages that the script which serves a model needs beside MLflow."""
_READY = "ready"
_LONGEST = 1800


def python_of(env: str, model: Runnable, folder: Path) -> str:
    """The python to run ``model`` with; ``uv`` builds one below ``folder``, once for the same requirements."""
    if env == CURRENT:
        return sys.executable
    return env if env != UV else str(_built(model, folder))


def _built(model: Runnable, folder: Path) -> Path:
    tool = _uv()
    if tool is None:
        raise ModelError(
            "scoring.env is uv, and uv is not installed: run pip install uv, or set scoring.env to current or to a "
            "python that has what the model needs"
        )
    if model.requirements is None:
        raise ModelError(
            "scoring.env is uv, and the model was logged without requirements.txt: log it with pip_requirements, or "
            "set scoring.env to a python that has what it needs"
        )
    wanted = model.requirements.read_bytes()
    version = _short(model.python or "{}.{}".format(*sys.version_info[:2]))
    name = hashlib.sha256(b"\0".join([version.encode(), wanted])).hexdigest()[:16]
    place = folder / "environments" / name
    python = place / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.with_suffix(".lock")):
        if not (place / _READY).exists():
            log.info("building an environment for %s from its requirements.txt", model.model.name)
            _run([tool, "venv", "--quiet", "--clear", "--python", version, str(place)])
            _run([tool, "pip", "install", "--quiet", "--python", str(python), "-r", str(model.requirements), *_NEEDED])
            (place / _READY).touch()
    return python


def _uv() -> str | None:
    """The tool: of the path, beside opmon's python, or where its package was installed."""
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        with suppress(ImportError, FileNotFoundError):
            from uv import find_uv_bin

            return str(find_uv_bin())
    return found


def _short(version: str) -> str:
    """
    >>> _short("3.11.7")
    '3.11'
    """
    return ".".join(version.split(".")[:2])


def _run(command: list[str]) -> None:
    """Run a step of the building; an error with the last words of one that fails."""
    try:
        with ends_within(_LONGEST):
            subprocess.run(command, check=True, capture_output=True, timeout=_LONGEST, stdin=subprocess.DEVNULL)  # noqa: S603
    except subprocess.TimeoutExpired as exc:
        raise ModelError(f"{_shown(command)} took longer than {_LONGEST // 60} minutes; run it by hand") from exc
    except subprocess.CalledProcessError as exc:
        lines = [line.strip() for line in exc.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise ModelError(
            f"the environment of the model cannot be built: {' '.join(lines[-4:])[:500] or 'no reason was given'} "
            f"({_shown(command)}). Correct its requirements.txt, or set scoring.env to a python that has them"
        ) from exc


def _shown(command: list[str]) -> str:
    return " ".join(["uv", *command[1:3]])


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock, so that only one process at a time builds an environment."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        locks.lock(handle, locks.EXCLUSIVE)
        yield
    finally:
        os.close(handle)
