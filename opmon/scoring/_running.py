"""Running a model over more inputs than it is given at once, on all cores."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from opmon.errors import EndlessModel, ModelError, OutOfMemory
from opmon.scoring._batching import Sizes
from opmon.scoring.session import Session
from opmon.types import Array

T = TypeVar("T")
R = TypeVar("R")
Tensors = Mapping[str, Array]
Outputs = list[Array]
Part = tuple[Tensors, int]
"""Some rows, and the number of the first of them."""
_WAITING, _TASKS = 2, 4
_BLOCK = 1 << 16
"""The numbers of the first output that are read at once: enough for NumPy to be quick, few enough for the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Result(Generic[R]):
    """The result for some rows, in pieces and in order, and why the model ``failed`` on others."""

    pieces: Sequence[R]
    failed: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class Runner:
    """A session, how many inputs it takes at once, and on how many ``lanes`` at the same time.

    Several pieces side by side, one core each, are done sooner than one after the other on all cores: threads that
    share one small product wait for each other most of the time.
    """

    session: Session
    sizes: Sizes = field(default_factory=Sizes)
    lanes: int = 1

    def run(self, names: Sequence[str], tensors: Tensors) -> list[Array]:
        """The outputs called ``names`` for all rows; an error where the model does not run on one of them."""
        ((_, result),) = self.stream(names, [(None, tensors)], lambda outputs: outputs)
        if result.failed:
            raise ModelError(next(iter(result.failed.values())))
        pieces = result.pieces or [self.session.run(names, tensors)]  # of no row at all: for the shapes
        return [np.concatenate(column) for column in zip(*pieces, strict=True)]

    def stream(
        self, names: Sequence[str], items: Iterable[tuple[T, Tensors]], read: Callable[[Outputs], R]
    ) -> Iterator[tuple[T, Result[R]]]:
        """Each item with what ``read`` makes of the outputs for its rows, in order; the next ones are begun before.

        ``read`` is called in the lanes, on the outputs of some thousand numbers while they are in the core's cache.
        """
        waiting: deque[tuple[T, list[Future[Result[R]]]]] = deque()
        pool = ThreadPoolExecutor(self.lanes, thread_name_prefix="opmon-lane")
        try:
            for item, tensors in items:
                shares = self._shares(list(self._parts(names, tensors)))
                waiting.append((item, [pool.submit(self._share, names, share, read) for share in shares]))
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

    def _parts(self, names: Sequence[str], tensors: Tensors) -> Iterator[Part]:
        """The rows in pieces, and the number of the first row of each."""
        count = _rows(tensors)
        size = self.fixed or self.sizes.size(count, lambda size: self._once(names, _cut(tensors, 0, size)))
        for start in range(0, count, size):
            yield _cut(tensors, start, start + size), start

    def _shares(self, parts: list[Part]) -> list[list[Part]]:
        """The pieces in as few tasks as keep all lanes busy: handing one over takes as long as a small one takes."""
        tasks = 1 if self.lanes == 1 else max(1, min(_TASKS * self.lanes, len(parts)))
        edges = [len(parts) * task // tasks for task in range(tasks + 1)]
        return [parts[start:stop] for start, stop in itertools.pairwise(edges)]

    def _share(self, names: Sequence[str], parts: Sequence[Part], read: Callable[[Outputs], R]) -> Result[R]:
        done: list[R] = []
        failed: dict[int, str] = {}
        block: list[Outputs] = []
        for part, first in parts:
            result = self._piece(names, part, first)
            failed |= result.failed
            block += result.pieces
            if sum(np.size(outputs[0]) for outputs in block) >= _BLOCK:
                done.append(read(_joined(block)))
                block = []
        if block:
            done.append(read(_joined(block)))
        return Result(done, failed)

    def _piece(self, names: Sequence[str], part: Tensors, first: int) -> Result[Outputs]:
        """The outputs for a piece; where the model fails on it, without the rows that it fails on."""
        try:
            return Result(self._within_memory(names, part), {})
        except ModelError as exc:
            count, result = _rows(part), self._searched(names, part, first, exc)
            if count > 1 and not result.pieces:
                raise  # it is not a row's fault
            if not result.failed and not self.fixed:  # it goes with fewer at once, whatever its file says
                self.sizes.lower(max(len(piece[0]) for piece in result.pieces))
            return result

    def _searched(self, names: Sequence[str], part: Tensors, first: int, exc: ModelError) -> Result[Outputs]:
        """The outputs for halves of a piece, and halves of them, down to the rows that the model fails on."""
        count = _rows(part)
        if isinstance(exc, OutOfMemory | EndlessModel):
            raise exc
        if count == 1:
            return Result([], {first: str(exc)})
        middle = count // 2
        return _together(
            [
                self._half(names, _cut(part, start, stop), first + start)
                for start, stop in ((0, middle), (middle, count))
            ]
        )

    def _half(self, names: Sequence[str], part: Tensors, first: int) -> Result[Outputs]:
        try:
            return Result(self._within_memory(names, part), {})
        except ModelError as exc:
            return self._searched(names, part, first, exc)

    def _within_memory(self, names: Sequence[str], part: Tensors) -> list[Outputs]:
        """The outputs in as many runs as memory makes it; what was too much for it is not tried again."""
        count, most = _rows(part), self.fixed or self.sizes.most
        if count <= most:
            try:
                return [self._once(names, part)]
            except OutOfMemory:
                if self.fixed or count == 1:
                    raise
                self.sizes.lower(count // 2)
                most = self.sizes.most
        parts = [_cut(part, start, start + most) for start in range(0, count, most)]
        return [piece for some in parts for piece in self._within_memory(names, some)]

    def _once(self, names: Sequence[str], part: Tensors) -> Outputs:
        have, fixed = _rows(part), self.fixed
        if fixed and have < fixed:
            part = {name: np.resize(values, (fixed, *values.shape[1:])) for name, values in part.items()}
        results = self.session.run(names, part)
        for name, result in zip(names, results, strict=True):
            if np.ndim(result) == 0 or len(result) != (fixed or have):
                raise ModelError(
                    f"the model's output {name!r} has the shape {list(np.shape(result))} for {fixed or have} inputs, "
                    f"and must have one row for each. Export it with a batch dimension that may vary."
                )
        return [result[:have] for result in results]


def _rows(tensors: Tensors) -> int:
    return len(next(iter(tensors.values())))


def _cut(tensors: Tensors, start: int, stop: int) -> Tensors:
    return {name: values[start:stop] for name, values in tensors.items()}


def _joined(pieces: Sequence[Outputs]) -> Outputs:
    return pieces[0] if len(pieces) == 1 else [np.concatenate(column) for column in zip(*pieces, strict=True)]


def _together(results: Sequence[Result[R]]) -> Result[R]:
    return Result(
        [piece for some in results for piece in some.pieces],
        {row: why for some in results for row, why in some.failed.items()},
    )


def _done(item: T, futures: Sequence[Future[Result[R]]]) -> tuple[T, Result[R]]:
    return item, _together([piece.result() for piece in futures])
