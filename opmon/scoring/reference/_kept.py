"""A sample of limited size of rows that stream by, stratified by class, the same whatever the batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.tables import joined
from opmon.types import Array


class Kept:
    """A random sample of at most ``limit`` rows: each gets a random number, and those with the least are kept.

    Of each class the ``limit / (2 · classes)`` least are kept whatever the others are, so that a rare class is not
    lost; what is left of ``limit`` goes to the least of all. Memory is at most about twice the limit.
    """

    def __init__(self, limit: int, rng: np.random.Generator) -> None:
        self.limit, self.rng = limit, rng
        self._rows: list[Array] = []
        self._classes: list[NDArray[np.int64]] = []
        self._numbers: list[NDArray[np.float64]] = []
        self._count = 0

    def add(self, rows: Array, classes: NDArray[np.int64]) -> None:
        self._rows.append(rows)
        self._classes.append(classes)
        self._numbers.append(self.rng.random(len(rows)))
        self._count += len(rows)
        if self._count > 2 * self.limit + 10_000:
            self._reduce(spare=True)

    def result(self) -> tuple[Array, NDArray[np.int64]]:
        """The rows that are kept, in the order they came, and their classes."""
        if not self._rows:
            return np.empty((0, 0), np.float32), np.empty(0, np.int64)
        self._reduce(spare=False)
        return self._rows[0], self._classes[0]

    def _reduce(self, spare: bool) -> None:
        rows, classes = np.concatenate(self._rows), np.concatenate(self._classes)
        numbers = np.concatenate(self._numbers)
        if len(rows) > self.limit:
            chosen = self._chosen(classes, numbers, spare)
            rows, classes, numbers = rows[chosen], classes[chosen], numbers[chosen]
        self._rows, self._classes, self._numbers, self._count = [rows], [classes], [numbers], len(rows)

    def _chosen(self, classes: NDArray[np.int64], numbers: NDArray[np.float64], spare: bool) -> NDArray[np.int64]:
        different, which = np.unique(classes, return_inverse=True)
        share = max(1, self.limit // (2 * len(different)))
        order = np.lexsort((numbers, which))
        starts = np.searchsorted(which[order], np.arange(len(different)))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - starts[which[order]]
        sure = rank < share
        rest = np.flatnonzero(~sure)
        room = self.limit if spare else max(0, self.limit - int(sure.sum()))
        filled = rest[np.argsort(numbers[rest], kind="stable")[:room]]
        return np.sort(np.concatenate([np.flatnonzero(sure), filled]))[: None if spare else self.limit]


class KeptRows:
    """A random sample of at most ``limit`` rows of tables that stream by."""

    def __init__(self, limit: int, rng: np.random.Generator) -> None:
        self.limit, self.rng = limit, rng
        self._tables: list[pa.Table] = []
        self._numbers = np.empty(0)

    def add(self, table: pa.Table) -> None:
        if table.num_columns:
            self._tables.append(table)
            self._numbers = np.concatenate([self._numbers, self.rng.random(table.num_rows)])
            if len(self._numbers) > 4 * self.limit:
                self._reduce()

    def result(self) -> pa.Table:
        self._reduce()
        return self._tables[0] if self._tables else pa.table({})

    def _reduce(self) -> None:
        if not self._tables:
            return
        whole = joined(self._tables)
        if len(self._numbers) > self.limit:
            chosen = np.sort(np.argsort(self._numbers, kind="stable")[: self.limit])
            whole, self._numbers = whole.take(pa.array(chosen)), self._numbers[chosen]
        self._tables = [whole]
