"""Running a model over more inputs than it is given at once, on all cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from opmon.scoring.batching import size_by_probe
from opmon.scoring.session import Session

T = TypeVar("T")
Tensors = Mapping[str, NDArray[Any]]
_WAITING = 2


@dataclass(frozen=True, eq=False)
class Runner:
    """A session, how many inputs it takes at once, and on how many ``lanes`` at the same time.

    Several pieces side by side, one core each, are done sooner than one after the other on all cores: threads that
    share one small product wait for each other most of the time.
    """

    session: Session
    batch_size: int = 1024
    """0: found by trying, when the first inputs come."""
    lanes: int = 1
    _found: dict[str, int] = field(default_factory=dict, repr=False)

    def run(self, names: Sequence[str], tensors: Tensors) -> list[NDArray[Any]]:
        """The outputs called ``names`` for all rows."""
        (found,) = (pieces for _, pieces in self.stream(names, [(None, tensors)]))
        if not found:
            found = [self.session.run(names, tensors)]  # no row at all: for the shapes
        return [np.concatenate(column) for column in zip(*found, strict=True)]

    def stream(self, names: Sequence[str], items: Iterable[tuple[T, Tensors]]) -> Iterator[tuple[T, list[list[Any]]]]:
        """Each item with the outputs for its rows, in pieces and in order; the next ones are begun before."""
        waiting: deque[tuple[T, list[Future[list[Any]]]]] = deque()
        pool = ThreadPoolExecutor(self.lanes, thread_name_prefix="opmon-lane")
        try:
            for item, tensors in items:
                waiting.append((item, [pool.submit(self._piece, names, *part) for part in self._parts(names, tensors)]))
                if len(waiting) >= _WAITING:
                    yield _done(*waiting.popleft())
            while waiting:
                yield _done(*waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    @property
    def fixed(self) -> int | None:
        """The number of inputs that the model wants at once, where it is fixed in the file."""
        return next((tensor.shape[0] for tensor in self.session.inputs if tensor.shape), None)

    def _parts(self, names: Sequence[str], tensors: Tensors) -> Iterator[tuple[dict[str, NDArray[Any]], int]]:
        count = len(next(iter(tensors.values())))
        size = self.fixed or self.batch_size or self._probed(names, tensors, count)
        for start in range(0, count, size):
            yield {name: values[start : start + size] for name, values in tensors.items()}, min(size, count - start)

    def _piece(self, names: Sequence[str], part: dict[str, NDArray[Any]], have: int) -> list[Any]:
        if self.fixed and have < self.fixed:
            part = {name: np.resize(values, (self.fixed, *values.shape[1:])) for name, values in part.items()}
        return [result[:have] for result in self.session.run(names, part)]

    def _probed(self, names: Sequence[str], tensors: Tensors, count: int) -> int:
        if count and "size" not in self._found:

            def run(size: int) -> None:
                self.session.run(names, {name: values[:size] for name, values in tensors.items()})

            self._found["size"] = size_by_probe(run, count)
        return self._found.get("size", 1)


def _done(item: T, pieces: Sequence[Future[list[Any]]]) -> tuple[T, list[list[Any]]]:
    return item, [piece.result() for piece in pieces]
