"""The log of a Delta table: which files each version added, as JSON in ``_delta_log``."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs

from opmon.errors import InputError, SourceError
from opmon.redaction import shown_address
from opmon.stores import open_filesystem, scheme_of

_log = logging.getLogger(__name__)

_READABLE = frozenset(
    {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "deletionVectors", "columnMapping", "typeWidening"}
)
"""Features of a table under which its files can be read as they are, unless a file itself says otherwise."""
_LIMITS = {"connect_timeout": "10s", "timeout": "60s", "max_retries": "3", "retry_timeout": "60s"}
"""How long a store is waited for."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_VERSION = re.compile(r"\d{20}\.json")
_ONLY_LESS = ("DELETE", "UPDATE")
_AS_BEFORE = "RESTORE"
"""Adds files that the table had before, and need not remove any."""


@dataclass(frozen=True)
class File:
    """A file of rows that the table got."""

    path: str
    partition: Mapping[str, Any]
    rows: int | None
    """As the log says; None where it does not."""
    at: datetime
    """When it was committed."""
    has_deleted_rows: bool = False


@dataclass(frozen=True)
class Commit:
    """What one version of the table says."""

    version: int
    operation: str
    at: datetime
    files: tuple[File, ...]
    removes: int
    """How many files with rows it took away."""
    replaces_all: bool


class Table:
    """A Delta table as it is now, and how it came to be."""

    def __init__(self, uri: str) -> None:
        self.uri, self.shown = uri, shown_address(uri)
        self._options = _options(uri)
        self._now = self._opened(None)
        self.version: int = self._now.version()
        self._require_readable()

    @functools.cached_property
    def files(self) -> pa.fs.FileSystem:
        """The table's folder. (deltalake's own file system holds up all of Python while it waits for a store.)"""
        if scheme_of(self.uri) is None:
            return pa.fs.SubTreeFileSystem(self.uri, pa.fs.LocalFileSystem())
        filesystem, path = open_filesystem(self.uri)
        return pa.fs.SubTreeFileSystem(path, filesystem)

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """All columns, those that the files are parted by too."""
        return pa.schema(self._now.schema().to_arrow()).remove_metadata()

    @functools.cached_property
    def parted_by(self) -> frozenset[str]:
        return frozenset(self._now.metadata().partition_columns)

    @functools.lru_cache(maxsize=4)  # noqa: B019 - a table lives for one look
    def at(self, version: int) -> tuple[File, ...]:
        """All files of the table as it was at a version, oldest first."""
        actions = pa.table(self._opened(version).get_add_actions(flatten=False))
        self._require_whole_rows(version)
        known = set(actions.column_names)
        files = []
        for row in sorted(actions.to_pylist(), key=lambda row: (row["modification_time"], row["path"])):
            moment = datetime.fromtimestamp(row["modification_time"] / 1000, UTC)
            parts = row["partition"] or {} if "partition" in known else {}
            files.append(File(unquote(row["path"]), parts, row["num_records"], moment))
        return tuple(files)

    @functools.lru_cache(maxsize=10_000)  # noqa: B019
    def commit(self, version: int) -> Commit:
        """What a version says; an error where its part of the log is gone."""
        name = f"_delta_log/{version:020d}.json"
        try:
            with self.files.open_input_file(name) as stream:
                actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
        except FileNotFoundError as exc:
            raise SourceError(
                f"{self.shown}: version {version} is gone from the table's log (delta.logRetentionDuration): nobody "
                f"knows which rows it added. Say vacuumed: skip to go on with the versions that are there; or give the "
                f"monitor a new name, and no since: it begins with the table as it is."
            ) from exc
        except (OSError, ValueError) as exc:
            raise SourceError(f"{self.shown}: version {version} of the log cannot be read: {exc}") from exc
        return _commit(version, actions)

    def added(self, version: int, changes: str) -> tuple[File, ...]:
        """The files with rows that a version added; those that hold what was there before are none of them."""
        commit = self.commit(version)
        rewrites = commit.removes or commit.operation == _AS_BEFORE
        if not (commit.files and rewrites) or commit.operation in _ONLY_LESS:
            if commit.removes:
                _log.info(
                    "%s: version %s (%s) changed or removed rows; what was read stays as it was read",
                    self.shown, version, commit.operation,
                )  # fmt: skip
            return () if commit.removes else commit.files
        if changes == "skip":
            _log.warning("%s: version %s (%s) is passed over", self.shown, version, commit.operation)
            return ()
        what = "replaced the table's rows" if commit.replaces_all else "changed rows and may have added some"
        raise SourceError(
            f"{self.shown}: version {version} ({commit.operation}) {what}: nobody knows which of its rows are new. "
            f"Append to the table; say changes: skip to pass such versions over, or give the monitor a new name: it "
            f"begins with the table as it is."
        )

    def has(self, file: File) -> bool:
        """Whether a file is still there."""
        return bool(self.files.get_file_info(file.path).type != pa.fs.FileType.NotFound)

    @functools.cached_property
    def oldest_logged(self) -> int:
        """The first version whose own part of the log is there; those before it are gone."""
        names = (info.base_name for info in self.files.get_file_info(pa.fs.FileSelector("_delta_log")))
        return min((int(name[:20]) for name in names if _VERSION.fullmatch(name)), default=self.version + 1)

    def version_of(self, moment: datetime) -> int:
        """The first version that is not older than a moment; the next one, where all are."""
        first = self.version + 1
        while first > 0 and self.commit(first - 1).at >= moment:
            first -= 1
        return first

    def _opened(self, version: int | None) -> Any:
        import deltalake

        try:
            return deltalake.DeltaTable(self.uri, version, self._options)
        except deltalake.exceptions.TableNotFoundError as exc:
            raise SourceError(f"there is no Delta table at {self.shown}: {_first(exc)}") from exc
        except (deltalake.exceptions.DeltaError, OSError, ValueError) as exc:
            about = self.shown if version is None else f"version {version} of {self.shown}"
            raise SourceError(f"{about} cannot be read: {_first(exc)}. Nothing is lost.") from exc

    def _require_readable(self) -> None:
        mapping = (self._now.metadata().configuration or {}).get("delta.columnMapping.mode", "none")
        if mapping != "none":
            raise SourceError(
                f"{self.shown} maps its columns to other names (delta.columnMapping.mode: {mapping}), which opmon does "
                f"not read. Copy what it gets to a table without that."
            )
        unknown = sorted(set(self._now.protocol().reader_features or ()) - _READABLE)
        if unknown:
            raise SourceError(f"{self.shown} uses {', '.join(unknown)}, which opmon does not read")

    def _require_whole_rows(self, version: int) -> None:
        if "deletionVectors" not in (self._now.protocol().reader_features or ()):
            return
        if pa.table(self._opened(version).deletion_vectors()).num_rows:
            raise SourceError(
                f"{self.shown} has files of which single rows are deleted (deletion vectors), which opmon does not "
                f"read. Run REORG TABLE … APPLY (PURGE), or begin later (since)."
            )


def require_installed() -> None:
    """An error that names the extra where ``deltalake`` is missing."""
    from importlib.util import find_spec

    if find_spec("deltalake") is None:
        raise InputError("type delta needs the package deltalake: run pip install 'opmon[delta]'")


def _commit(version: int, actions: Sequence[Mapping[str, Any]]) -> Commit:
    about: Mapping[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    stamps = [each["add"].get("modificationTime", 0) for each in actions if "add" in each]
    stamp = about.get("inCommitTimestamp") or about.get("timestamp") or max(stamps, default=0)
    moment = datetime.fromtimestamp(stamp / 1000, UTC)
    parameters = about.get("operationParameters") or {}
    added, removed = (
        [each[name] for each in actions if name in each and each[name].get("dataChange", True)]
        for name in ("add", "remove")
    )
    files = tuple(_file(add, moment) for add in added)
    operation = str(about.get("operation", "unknown"))
    return Commit(
        version, operation, moment, files, len(removed), str(parameters.get("mode", "")).lower() == "overwrite"
    )


def _file(add: Mapping[str, Any], moment: datetime) -> File:
    try:
        rows = json.loads(add.get("stats") or "{}").get("numRecords")
    except ValueError:
        rows = None
    return File(unquote(add["path"]), add.get("partitionValues") or {}, rows, moment, bool(add.get("deletionVector")))


def _options(uri: str) -> dict[str, str] | None:
    """What the store needs beside what it takes from the environment itself."""
    if scheme_of(uri) is None:
        return None
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if scheme_of(uri) != "s3" or not endpoint:
        return dict(_LIMITS)
    return {**_LIMITS, "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}


def _first(exc: Exception) -> str:
    text = _COLOUR.sub("", str(exc))
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[0].strip() if lines else type(exc).__name__
