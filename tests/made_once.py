"""What many tests begin with, made once on a machine and copied: databases with their tables, a registered model."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import opmon.store

_ROOT = Path(tempfile.gettempdir(), f"opmon-tests-{os.getuid()}")  # some tests set another folder for their files
_MADE_FROM = ("mlflow", "alembic", "sqlalchemy", "scikit-learn", "onnx", "skl2onnx")


def made_once(name: str, make: Callable[[Path], object], *sources: Path) -> Path:
    """The folder that ``make`` filled; it is made anew where a package or one of the ``sources`` is another."""
    digest = hashlib.sha256(" ".join(map(version, _MADE_FROM)).encode())
    for source in sorted(sources):
        digest.update(source.read_bytes())
    _ROOT.mkdir(mode=0o700, exist_ok=True)
    folder = _ROOT / f"{name}-{digest.hexdigest()[:16]}"
    whole = folder / "whole"
    if not whole.exists():
        with (_ROOT / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():  # nobody else made it meanwhile
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                whole.touch()
    return folder


def new_opmon_database(path: Path) -> str:
    """The address of a new SQLite database with today's tables."""
    shutil.copyfile(_opmon_tables() / "opmon.db", path)
    path.chmod(0o600)
    return f"sqlite:///{path}"


def new_mlflow_store(folder: Path) -> str:
    """The address of a new, empty tracking store on SQLite."""
    shutil.copyfile(_mlflow_tables() / "mlflow.db", folder / "mlflow.db")
    return f"sqlite:///{folder / 'mlflow.db'}"


@functools.cache
def _opmon_tables() -> Path:
    from opmon.store.engine import open_store

    def make(folder: Path) -> None:
        open_store(f"sqlite:///{folder / 'opmon.db'}").close()
        assert [path.name for path in folder.iterdir()] == ["opmon.db"]  # nothing is left in the log beside it

    return made_once("opmon", make, *Path(opmon.store.__path__[0], "migrations").rglob("*.py"))


@functools.cache
def _mlflow_tables() -> Path:
    def make(folder: Path) -> None:
        from mlflow.store.db.utils import _initialize_tables, create_sqlalchemy_engine_with_retry

        engine = create_sqlalchemy_engine_with_retry(f"sqlite:///{folder / 'mlflow.db'}")
        _initialize_tables(engine)
        engine.dispose()

    return made_once("mlflow", make)


def copy_mlflow_store(made: Path, folder: Path) -> str:
    """The address of a store that holds what another holds, its artifacts too, in a folder of its own."""
    shutil.copyfile(made / "mlflow.db", folder / "mlflow.db")
    shutil.copytree(made / "artifacts", folder / "artifacts")
    for described in (folder / "artifacts").rglob("MLmodel"):
        described.write_text(described.read_text().replace(str(made), str(folder)))
    connection = sqlite3.connect(folder / "mlflow.db")
    for table, column in _PLACES:
        connection.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (str(made), str(folder)))
    connection.execute("DELETE FROM experiments WHERE experiment_id = 0")  # MLflow makes it anew where it is opened
    connection.commit()
    assert str(made) not in "".join(connection.iterdump())
    connection.close()
    return f"sqlite:///{folder / 'mlflow.db'}"


_PLACES = (
    ("experiments", "artifact_location"),
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "storage_location"),
)
