"""Ways in which a batch gets its scores, decided here alone.

A job carries a :class:`Way`, which is small and can be pickled; where the job runs, :func:`opened` makes of it what
answers batches. :class:`ByOnnx` is the model's own ONNX file in ONNX Runtime, :class:`ByLog` what production logged,
:class:`ByFlavor` the model as MLflow runs it, in a process of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from opmon.abc import Runnable
from opmon.errors import ModelError
from opmon.jobs.identity import identity
from opmon.scoring.devices import Device
from opmon.scoring.flavor.environment import CURRENT, python_of
from opmon.scoring.flavor.process import Worker
from opmon.scoring.flavor.scorer import FlavorScorer
from opmon.scoring.inputs.columns import AS_NAN, Missing
from opmon.scoring.inputs.readers import ReaderPlan
from opmon.scoring.logged import LoggedColumns, LoggedScorer
from opmon.scoring.outputs.meaning import Scores
from opmon.scoring.outputs.sets import HALF
from opmon.scoring.reference.fitted import Reference
from opmon.scoring.scored import Scored
from opmon.scoring.scorer import Scorer
from opmon.spellings import AS_SPELT, Classes, Spellings
from opmon.types import Batch, Json, Problem, Signature

if TYPE_CHECKING:
    from opmon.abc import Head


class Answering(Protocol):
    """A scorer of batches: it gives one :class:`Scored` for each that has rows, in order."""

    def score(self, batches: Iterable[Batch]) -> Iterator[Scored]: ...

    def describe(self) -> Mapping[str, Json]: ...

    def keeping_scores(self) -> Answering:
        """The same scorer, with the probabilities of all classes in its answers."""
        ...


A = TypeVar("A", bound=Answering, covariant=True)


class Way(Protocol[A]):
    """A way in which batches get their scores, before anything is loaded."""

    def open(self) -> A: ...

    def is_there(self) -> bool: ...


@dataclass(frozen=True)
class ByOnnx:
    """A model's ONNX file, how it is fed and read, and the variables to compute beside it.

    The fields are the arguments of :meth:`Scorer.open <opmon.scoring.scorer.Scorer.open>`; ``reference`` is a file.
    """

    path: Path
    name: str
    """The model's name in errors."""
    problem: Problem
    classes: Classes | None = None
    features: tuple[str, ...] | None = None
    tensor: str | None = None
    device: Device = "auto"
    threads: int | None = None
    output: str | None = None
    scores: Scores = "auto"
    threshold: float = HALF
    missing: Missing = AS_NAN
    heads: Mapping[str, Head] = field(default_factory=dict)
    reference: Path | None = None
    layer: str | None = None
    traced: bool = False
    reading: ReaderPlan | None = None
    signature: tuple[str, ...] = ()

    def open(self) -> Scorer:
        """Load the model in this process."""
        arguments: dict[str, Any] = {key: getattr(self, key) for key in self.__dataclass_fields__}
        path, name = arguments.pop("path"), arguments.pop("name")
        arguments["reference"] = None if self.reference is None else Reference.load(self.reference)
        try:
            return Scorer.open(path, **arguments)
        except ModelError as exc:
            raise ModelError(f"{name}: {exc}") from exc

    def is_there(self) -> bool:
        """Whether the model's file is still on this machine."""
        return self.path.exists()


@dataclass(frozen=True)
class ByLog:
    """The answers that production logged itself: the fields are those of :class:`LoggedScorer`."""

    columns: LoggedColumns
    problem: Problem
    classes: tuple[str, ...] | None = None
    spellings: Spellings = AS_SPELT
    meaning: Scores = "auto"
    threshold: float = HALF

    def open(self) -> LoggedScorer:
        """Open the scorer; nothing is loaded."""
        return LoggedScorer(
            self.columns, self.problem, self.classes, self.spellings, self.meaning, threshold=self.threshold
        )

    def is_there(self) -> bool:
        return True


@dataclass(frozen=True)
class ByFlavor:
    """The model as it was logged, and how it is run and read: see :class:`FlavorScorer`."""

    model: Runnable
    name: str
    """The model's name in errors."""
    problem: Problem
    folder: Path
    """The folder in which environments are built."""
    classes: tuple[str, ...] | None = None
    spellings: Spellings = AS_SPELT
    meaning: Scores = "auto"
    features: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    signature: Signature | None = None
    env: str = CURRENT
    timeout: float = 300.0
    memory: int | None = None
    reading: ReaderPlan | None = None
    threshold: float = HALF

    def open(self) -> FlavorScorer:
        """The model, in a process that is started when it is first asked."""
        try:
            python = python_of(self.env, self.model, self.folder)
        except ModelError as exc:
            raise ModelError(f"{self.name}: {exc}") from exc
        return FlavorScorer(
            Worker(python, self.model.script, self.model.model, self.timeout, self.memory),
            self.problem,
            self.classes,
            self.spellings,
            self.meaning,
            self.features,
            self.left_out,
            self.signature,
            self.reading,
            threshold=self.threshold,
        )

    def is_there(self) -> bool:
        """Whether the model is still on this machine."""
        return self.model.model.exists()


_lock = threading.Lock()
_open: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The scorers that are open, by the identity of their way; each has the type that the way's ``open`` gives."""
_latest: dict[str, object] = {}
"""The scorer used last, which stays open for the next job; others stay open while somebody holds them."""


def held(way: Way[A]) -> A | None:
    """The scorer that this way opens, where this process has it loaded."""
    with _lock:
        scorer: A | None = _open.get(identity(way))
    return scorer


def opened(way: Way[A]) -> A:
    """The scorer that this way opens, loaded once while this process uses it."""
    key, scorer = identity(way), held(way)
    if scorer is None:
        with _lock:
            _latest.clear()  # a device has room for one model, not for two
        scorer = way.open()
    with _lock:
        _latest.clear()
        _open[key] = _latest[key] = scorer
    return scorer


def forget(way: Way[A]) -> None:
    """Keep the scorer that this way opens no longer, and what memory it has taken."""
    with _lock:
        _latest.clear()
        _open.pop(identity(way), None)
