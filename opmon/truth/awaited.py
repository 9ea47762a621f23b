"""The inputs of each round whose truth has not come: when hardly any is left, the round is a census."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opmon.private import private_folder


@dataclass(frozen=True, eq=False)
class Awaited:
    """The hashes of the inputs of a round without a truth, sorted, and how many inputs it has."""

    name: str
    missing: NDArray[np.uint64]
    size: int
    since: datetime


@dataclass(frozen=True)
class Waiting:
    """The rounds whose truths are awaited, a file for each."""

    folder: Path

    def get(self, name: str) -> Awaited | None:
        """What a round waits for; None where that is not known, or it waits no more."""
        path = self._path(name)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as kept:
            size, since = kept["facts"].tolist()
            return Awaited(name, kept["missing"], size, datetime.fromtimestamp(since, UTC))

    def put(self, awaited: Awaited) -> None:
        """Keep what a round waits for."""
        private_folder(self.folder.parent)
        private_folder(self.folder)
        partial = self.folder / f"{awaited.name}.partial"
        with partial.open("wb") as stream:
            facts = np.array([awaited.size, int(awaited.since.timestamp())])
            np.savez(stream, missing=awaited.missing, facts=facts)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(self._path(awaited.name))

    def forget(self, name: str) -> None:
        """It waits no more."""
        self._path(name).unlink(missing_ok=True)

    def hear(self, came: NDArray[np.uint64], older: datetime) -> None:
        """Truths of inputs with these sorted hashes have come; rounds that wait since before ``older`` give up."""
        for awaited in list(self.all()):
            if awaited.since < older:
                self.forget(awaited.name)
                continue
            if not len(came) or not len(awaited.missing):
                continue
            place = np.minimum(np.searchsorted(came, awaited.missing), len(came) - 1)
            left = awaited.missing[came[place] != awaited.missing]
            if len(left) < len(awaited.missing):
                self.put(Awaited(awaited.name, left, awaited.size, awaited.since))

    def all(self) -> Iterator[Awaited]:
        """Every round that waits."""
        for path in sorted(self.folder.glob("*.npz")):
            found = self.get(path.stem)
            if found is not None:
                yield found

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"
