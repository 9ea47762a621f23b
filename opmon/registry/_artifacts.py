"""The files that MLflow keeps with runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from opmon.abc import Registry
from opmon.errors import InputError
from opmon.registry._calls import Bounded
from opmon.registry.connection import Connection
from opmon.registry.translation import translated


class Artifacts(Registry):
    """Files of runs: written, listed, fetched and removed, each in a call whose errors are opmon's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def log_artifact(self, run_id: str, path: Path, folder: str | None = None) -> None:
        _require_file(path, path.is_file(), "file")
        with self._translated(f"writing {path.name} to run {run_id}"):
            self._connection.upload(run_id, path, folder)

    def log_artifacts(self, run_id: str, directory: Path, folder: str | None = None) -> None:
        _require_file(directory, directory.is_dir(), "folder")
        super().log_artifacts(run_id, directory, folder)

    def download(self, run_id: str, artifact_path: str, into: Path) -> Path:
        """An artifact, file or folder, copied below ``into``."""
        _require_inside(artifact_path)
        into.mkdir(parents=True, exist_ok=True)
        with self._translated(f"downloading {artifact_path} of run {run_id}"):
            return self._connection.download(run_id, artifact_path, into)

    def files(self, run_id: str) -> dict[str, int]:
        """The bytes of each file that is kept with a run, by its path; none where the run is gone."""
        found: dict[str, int] = {}
        folders: list[str | None] = [None]
        with self._translated(f"listing the files of run {run_id}"):
            while folders:
                try:
                    entries = self._client.list_artifacts(run_id, folders.pop())
                except Exception as exc:
                    if getattr(exc, "error_code", None) != "RESOURCE_DOES_NOT_EXIST":
                        raise
                    continue
                folders += [entry.path for entry in entries if entry.is_dir]
                found |= {entry.path: int(entry.file_size or 0) for entry in entries if not entry.is_dir}
        return found

    def remove_file(self, run_id: str, path: str) -> None:
        """Remove a file from the store that holds the artifacts of a run."""
        _require_inside(path)
        with self._translated(f"removing {path} of run {run_id}"):
            folder, _, _ = path.rpartition("/")
            if path in {entry.path for entry in self._client.list_artifacts(run_id, folder or None)}:
                self._connection.remove(run_id, path)

    @property
    def _client(self) -> Bounded:
        return self._connection.client

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return translated(doing, self._connection.where)


def _require_inside(path: str) -> None:
    inside = PurePosixPath(path)
    if inside.is_absolute() or ".." in inside.parts:
        raise InputError(f"an artifact's path stays inside its run; got {path!r}")


def _require_file(path: Path, there: bool, what: str) -> None:
    if not there:
        raise InputError(f"there is no {what} {str(path)!r} to write to MLflow")
