"""How a batch gets its scores: the one place that decides it.

A job carries a :class:`Way`, which is small and can be pickled; where the job runs, :func:`opened` makes of it what
answers batches. :class:`ByOnnx` is the model's own ONNX file in ONNX Runtime; another way is another class with
``open``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from opmon.errors import ModelError
from opmon.jobs.identity import identity
from opmon.scoring.devices import Device
from opmon.scoring.inputs.columns import AS_NAN, Missing
from opmon.scoring.inputs.readers import ReaderPlan
from opmon.scoring.outputs.meaning import Scores
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.spellings import Classes
from opmon.types import Batch, Problem

if TYPE_CHECKING:
    from opmon.abc import Head


class Answering(Protocol):
    """Something that answers batches, one :class:`Scored` for each that has rows, in order."""

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]: ...


A = TypeVar("A", bound=Answering, covariant=True)


class Way(Protocol[A]):
    """Says how batches get their scores, before anything is loaded."""

    def open(self) -> A: ...


@dataclass(frozen=True)
class ByOnnx:
    """A model's ONNX file, how it is fed and read, and the variables to compute beside it.

    The fields are the arguments of :meth:`Scorer.open <opmon.scoring.scorer.Scorer.open>`; ``reference`` is a file.
    """

    path: Path
    name: str
    """What errors call the model."""
    problem: Problem
    classes: Classes | None = None
    features: tuple[str, ...] | None = None
    tensor: str | None = None
    device: Device = "auto"
    threads: int | None = None
    output: str | None = None
    scores: Scores = "auto"
    missing: Missing = AS_NAN
    heads: Mapping[str, Head] = field(default_factory=dict)
    reference: Path | None = None
    layer: str | None = None
    traced: bool = False
    reading: ReaderPlan | None = None
    signature: tuple[str, ...] = ()

    def open(self) -> Scorer:
        """The model, loaded here."""
        arguments: dict[str, Any] = {each: getattr(self, each) for each in self.__dataclass_fields__}
        path, name = arguments.pop("path"), arguments.pop("name")
        arguments["reference"] = None if self.reference is None else Reference.load(self.reference)
        try:
            return Scorer.open(path, **arguments)
        except ModelError as exc:
            raise ModelError(f"{name}: {exc}") from exc


_lock = threading.Lock()
_open: WeakValueDictionary[str, Any] = WeakValueDictionary()
_latest: dict[str, Any] = {}
"""What was used last stays open for the next job; whoever holds others finds them again."""


def held(way: Way[A]) -> A | None:
    """What answers batches this way, where this process has it loaded."""
    with _lock:
        known: A | None = _open.get(identity(way))
    return known


def opened(way: Way[A]) -> A:
    """What answers batches this way: loaded once while this process uses it."""
    key, known = identity(way), held(way)
    if known is None:
        with _lock:
            _latest.clear()  # a device has room for one model, not for two
        known = way.open()
    with _lock:
        _latest.clear()
        _open[key] = _latest[key] = known
    return known
