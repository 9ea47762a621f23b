"""The registry ``folder``: models, and all that opmon finds out about them, as files that can be read by eye."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import quote

from opmon.abc import Ability, Converter, Registry
from opmon.errors import InputError, ModelError, NotFoundError
from opmon.types import ModelVersion

_ADDRESS = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[^/@]+))")


@dataclass(frozen=True)
class Folder(Registry):
    """Models are at ``path/NAME/VERSION/model.onnx``, their aliases in ``path/NAME/aliases.json``.

    A run is a folder below ``path/.runs``: ``metrics.jsonl`` has a line for each number, ``artifacts/`` the files.
    Its id is made from its key, so that a run is never made twice.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)
    abilities: ClassVar[frozenset[Ability]] = frozenset({"move aliases", "remove files"})

    path: str

    @property
    def address(self) -> str:
        return self.path

    @property
    def _root(self) -> Path:
        return Path(self.path)

    def check(self) -> str:
        if not self._root.is_dir():
            raise NotFoundError(f"there is no folder {self.path}; make it, and put NAME/VERSION/model.onnx into it")
        models = [entry for entry in self._root.iterdir() if entry.is_dir() and entry.name != ".runs"]
        return f"the folder {self.path} holds {len(models)} models"

    # --- models

    def resolve(self, uri: str) -> ModelVersion:
        address = _ADDRESS.fullmatch(uri)
        if address is None or address["name"].startswith("."):
            raise InputError(f"{uri!r} is no address of a model; write models:/name@alias or models:/name/3")
        version = address["version"] or self._aliases(address["name"]).get(address["alias"], "")
        model = ModelVersion(address["name"], version, ("onnx",))
        if not version.isdigit() or not self._onnx(model).is_file():
            raise NotFoundError(f"there is no model {uri} in {self.path}: {self._onnx(model)} is missing")
        return model

    def fetch_onnx(
        self, model: ModelVersion, into: Path, converter: Converter | None = None, trusted: bool = False
    ) -> Path:
        if not self._onnx(model).is_file():
            raise ModelError(f"{model.uri} has no {self._onnx(model)}")
        return self._onnx(model)

    def registered_at(self, model: ModelVersion) -> datetime:
        return datetime.fromtimestamp(self._onnx(model).stat().st_mtime, UTC)

    def version_tags(self, model: ModelVersion) -> dict[str, str]:
        return _read(self._onnx(model).with_name("tags.json"))

    def tag_version(self, model: ModelVersion, tags: Mapping[str, object]) -> None:
        said = {key: str(value) for key, value in tags.items()}
        _write(self._onnx(model).with_name("tags.json"), self.version_tags(model) | said)

    def set_alias(self, model: ModelVersion, alias: str) -> None:
        _write(self._root / model.name / "aliases.json", self._aliases(model.name) | {alias: model.version})

    def remove_alias(self, model: ModelVersion, alias: str) -> None:
        aliases = self._aliases(model.name)
        if aliases.get(alias) == model.version:
            del aliases[alias]
            _write(self._root / model.name / "aliases.json", aliases)

    def _aliases(self, name: str) -> dict[str, str]:
        return _read(self._root / name / "aliases.json")

    def _onnx(self, model: ModelVersion) -> Path:
        return self._root / model.name / model.version / "model.onnx"

    # --- runs

    def run(
        self,
        experiment_id: str,
        key: str,
        name: str,
        parent: str | None = None,
        tags: Mapping[str, object] | None = None,
    ) -> str:
        if not key:
            raise InputError("a run needs a key")
        run_id = f"{quote(experiment_id, safe='')}--{quote(key, safe='')}"
        told = self._run(run_id) / "run.json"
        if not told.exists():
            told.parent.mkdir(parents=True, exist_ok=True)
            _write(told, {"name": name, "parent": parent, **{str(k): str(v) for k, v in (tags or {}).items()}})
        return run_id

    def log_metrics(
        self,
        run_id: str,
        metrics: Mapping[str, float | None],
        step: int,
        at: datetime,
        model: ModelVersion | None = None,
    ) -> None:
        rows = [
            {"key": key, "step": step, "at": at.isoformat(), "value": float(value)}
            for key, value in metrics.items()
            if value is not None and math.isfinite(value)
        ]
        with (self._run(run_id) / "metrics.jsonl").open("a", encoding="utf-8") as lines:
            lines.write("".join(f"\n{json.dumps(row)}" for row in rows))

    def metric_history(self, run_id: str, key: str) -> list[tuple[int, datetime, float]]:
        file = self._run(run_id) / "metrics.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]  # a process may be killed while it writes
        told = {(row["step"], row["at"], row["value"]) for row in rows if row["key"] == key}
        return sorted((step, datetime.fromisoformat(at), value) for step, at, value in told)

    def log_artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        target = self._run(run_id) / "artifacts" / (folder or "") / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(target) as working:
            shutil.copyfile(path, working)

    def download(self, run_id: str, artifact_path: str, into: Path) -> Path:
        inside = _require_inside(artifact_path)
        source, target = self._run(run_id) / "artifacts" / inside, into / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copyfile(source, target)
        else:
            raise NotFoundError(f"run {run_id} has no artifact {artifact_path!r}")
        return target

    def files(self, run_id: str) -> dict[str, int]:
        root = self._run(run_id) / "artifacts"
        return {path.relative_to(root).as_posix(): path.stat().st_size for path in root.rglob("*") if path.is_file()}

    def remove_file(self, run_id: str, path: str) -> None:
        _require_inside(path)
        (self._run(run_id) / "artifacts" / path).unlink(missing_ok=True)

    def _run(self, run_id: str) -> Path:
        return self._root / ".runs" / run_id


def _require_inside(artifact_path: str) -> PurePosixPath:
    inside = PurePosixPath(artifact_path)
    if inside.is_absolute() or ".." in inside.parts:
        raise InputError(f"an artifact's path stays inside its run; got {artifact_path!r}")
    return inside


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _write(path: Path, values: Mapping[str, Any]) -> None:
    with _replacing(path) as working:
        working.write_text(json.dumps(values, indent=1), encoding="utf-8")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place once it is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    os.close(handle)
    try:
        yield Path(name)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
