"""Rows that no round needs any more are removed after a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opmon.errors import OpmonError
from opmon.sources.ingest import Ingest
from opmon.store import positions, slices
from opmon.store.engine import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pruning:
    """Removes files that were read to their end, ``keep`` seconds after they were written."""

    store: Store
    folders: Mapping[str, Path]
    """By monitor."""
    keep: float

    def prune(self) -> int:
        """Remove what is not needed; how many files that were. A round that is not closed needs its files."""
        removed = 0
        for monitor, folder in self.folders.items():
            try:
                with self.store.read() as connection:
                    read = positions.read(connection, monitor)
                    needed = slices.needed(connection, monitor)
            except OpmonError as exc:
                log.info("no rows of %s are removed now: %s", monitor, exc)
                continue
            for part, path in Ingest(str(folder)).spent(read, time.time() - self.keep):
                if part not in needed:
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed
