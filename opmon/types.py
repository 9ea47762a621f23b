"""The frozen values that pass between stages, one word per thing.

::

    Slice ─► Batch ─► Frame ─► Draw ─► Task ─► Label ─► Sample ─► Estimate ─► Verdict
    what     rows     scored   chosen  asked   answered  draw with   value and   what a rule
    to read           inputs                             outcomes    interval    concluded

A value is validated when it is made, so whoever receives one need not check it again. Arrays inside are not copied:
treat them as read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.quantities import ACCURACY, Quantity
from opmon.quantities import Problem as Problem

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import ArrayLike

Array: TypeAlias = NDArray[Any]
"""Values of one dtype that the data decide: numbers, text, truth values, objects."""
Floats: TypeAlias = NDArray[np.floating[Any]]
"""Numbers in single or double precision."""
Positions: TypeAlias = NDArray[np.int64]
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Anything that JSON can hold."""
Document: TypeAlias = Mapping[str, Any]
"""A JSON object whose keys its reader knows: settings, evidence that was kept, an answer over HTTP."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of the production log that one round reads: from ``start`` (included) to ``stop`` (excluded).

    ``part`` names a file, a table, a partition; ``start`` and ``stop`` mean something to the source alone. The next
    slice of the same part starts where the last one stopped, so a source needs no memory of its own.
    """

    part: str
    start: str
    stop: str
    rows: int
    arrived_at: datetime
    """When the oldest of these rows became readable, in UTC: what ``max_age`` is measured from."""

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError(f"a slice has at least one row; got rows={self.rows} for part {self.part!r}")
        _require_aware(self.arrived_at, "arrived_at")


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """One version of a registered model, resolved from an address such as ``models:/digits@champion``."""

    name: str
    version: str
    flavors: tuple[str, ...]
    run_id: str | None = None
    """The training run, where the registry knows it."""
    model_id: str | None = None
    """MLflow's LoggedModel, where there is one."""

    @property
    def uri(self) -> str:
        return f"models:/{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model was logged to take: named columns with MLflow's types, or tensors as (name, dtype, shape)."""

    columns: tuple[tuple[str, str], ...] = ()
    tensors: tuple[tuple[str | None, str, tuple[int, ...]], ...] = ()
    outputs: tuple[tuple[str | None, str, tuple[int, ...]], ...] = ()
    """What it was logged to give, likewise; a column has no shape."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order the model takes them."""
        return tuple(name for name, _ in self.columns)


@dataclass(frozen=True, slots=True)
class Runnable:
    """A model that runs in a process of its own.

    ``script`` is run by the model's python with the descriptors of requests and answers, ``model`` and the bytes that
    it may take: see ``opmon/registry/_worker.py`` for what they say to each other.
    """

    script: Path
    model: Path
    requirements: Path | None = None
    """What must be installed to run it, as pip reads it."""
    python: str | None = None
    """The version of Python that it was logged with."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive rows of one slice: row ``i`` of ``rows`` is row ``first_row + i`` of slice number ``slice_index``."""

    slice_index: int
    first_row: int
    rows: pa.RecordBatch
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Rows of the slice that are left out, because they cannot be read: why, and how many. They keep their numbers."""


class Columns(Mapping[str, Floats]):
    """Auxiliary variables by name, each read when it is first asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Floats]) -> None:
        self._names, self._read = tuple(names), read
        self._known: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The inputs of a round, scored: what a sampler draws from (the sampling frame).

    ``variables`` maps the name of an auxiliary variable to one value per input, larger = more suspicious; those of a
    monitor's frame are read from disk when they are asked for. ``predictions`` are for samplers that look at them.
    ``activations`` has one row per input and one column per neuron of a hidden layer. It is there only for samplers
    that need it, such as CES: numbers, or, in a monitor, uint8: in which of the sampler's ``activation_levels`` equal
    parts of its range over the frame each neuron lies.
    """

    variables: Mapping[str, Floats]
    predictions: Array | None = None
    activations: Array | None = None
    size: int = field(default=-1)

    def __post_init__(self) -> None:
        lengths: dict[str, int] = {}
        if not isinstance(self.variables, Columns):
            numbers = {name: _numbers(name, values) for name, values in self.variables.items()}
            object.__setattr__(self, "variables", numbers)
            lengths = {f"variables[{name!r}]": len(values) for name, values in numbers.items()}
        for name in ("predictions", "activations"):
            values = getattr(self, name)
            if values is not None:
                lengths[name] = len(values)
        if self.size >= 0:
            lengths["size"] = self.size
        if not lengths:
            raise InputError("a frame needs at least one variable, or its size: Frame({}, size=1000)")
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise InputError(f"everything in a frame has one entry per input; got {found}")
        object.__setattr__(self, "size", next(iter(lengths.values())))

    def variable(self, name: str) -> Floats:
        """The auxiliary variable ``name``, or an error that names those there are."""
        try:
            return self.variables[name]
        except KeyError:
            have = ", ".join(sorted(self.variables)) or "none at all"
            raise InputError(f"the frame has no variable {name!r}; it has: {have}") from None


def _numbers(name: str, values: ArrayLike) -> Floats:
    """A plain array of floats; float32 and float64 as they are, without a copy."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(f"variable {name!r} has masked values; give every input a number")
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise InputError(f"variable {name!r} must be one number per input; got shape {numbers.shape}")
    if numbers.dtype.kind not in "fiub":
        raise InputError(
            f"variable {name!r} must hold real numbers; got {numbers.dtype}: convert it with astype(float)"
        )
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Training data that went through the model, for a variable that learns from it: random samples of each."""

    inputs: Array
    """One row for each input: what the model was given, flat."""
    activations: NDArray[np.float32]
    """Of other inputs: one row of the traced layer's neurons each; without columns where no layer is traced."""
    predicted: NDArray[np.int64]
    """To which class the model counts each of ``activations``."""


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """What a sampler chose, in order, with all that its estimator needs.

    ``positions`` are positions in the frame, in the order drawn; a design with replacement may draw one twice: it is
    labelled once and counted twice. ``columns`` holds one value per draw (``probability``, ``stratum``, …),
    ``constants`` what belongs to the design as a whole (``stratum_size``, …): the sampler documents both.
    """

    design: str
    frame_size: int
    positions: Positions
    columns: Mapping[str, Array] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.frame_size < 1:
            raise InputError(f"a draw comes from a frame of at least one input; got frame_size={self.frame_size}")
        if self.positions.ndim != 1 or not np.issubdtype(self.positions.dtype, np.integer):
            raise InputError(
                f"positions must be a 1-D array of integers; got {self.positions.dtype} of shape {self.positions.shape}"
            )
        if len(self.positions) and not (self.positions.min() >= 0 and self.positions.max() < self.frame_size):
            raise InputError(
                f"positions must lie in 0..{self.frame_size - 1}; got {self.positions.min()}..{self.positions.max()}"
            )
        for name, values in self.columns.items():
            if len(values) != len(self.positions):
                raise InputError(f"column {name!r} has {len(values)} values for {len(self.positions)} draws")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def unique_positions(self) -> Positions:
        """The drawn inputs, each once, in the order of their first draw: what is sent to the annotators."""
        _, first = np.unique(self.positions, return_index=True)
        return self.positions[np.sort(first)]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A draw with its outcomes: ``outcomes[k]`` belongs to ``draw.positions[k]``.

    The outcome is the loss: 1 where the model is wrong and 0 where it is right (classification), or the squared error
    (regression). NaN means that no answer has come: skipped, or not yet returned.

    ``problem`` says which of the two they are. Without it they count as shares while all of them are 0 or 1: wrong for
    a regression on whole numbers whose larger errors happen not to be drawn.
    """

    draw: Draw
    outcomes: NDArray[np.float64]
    problem: Problem | None = None
    propensity: NDArray[np.float64] | None = None
    """How likely each draw was to be answered, up to a factor (:func:`opmon.estimators.propensity.weighed` fits it);
    None where nothing is known beyond the strata: answers are then taken to be missing at random inside them."""

    def __post_init__(self) -> None:
        if self.outcomes.shape != self.draw.positions.shape:
            raise InputError(f"one outcome per draw: got {self.outcomes.shape} for {self.draw.positions.shape} draws")
        if self.propensity is not None and not (
            self.propensity.shape == self.outcomes.shape
            and np.isfinite(self.propensity).all()
            and (self.propensity > 0).all()
        ):
            raise InputError(
                f"the propensity is one number above 0 per draw: {len(self.draw)} of them; "
                f"got shape {self.propensity.shape}, the least of them {np.min(self.propensity, initial=np.inf)}"
            )
        answered = self.outcomes[~np.isnan(self.outcomes)]
        if not np.isfinite(answered).all() or (answered < 0).any():
            bad = answered[~np.isfinite(answered) | (answered < 0)][0]
            raise InputError(f"outcomes must be finite and >= 0, or NaN where there is no answer; got {bad}")
        if self.problem == "classification" and not np.isin(answered, (0.0, 1.0)).all():
            bad = answered[~np.isin(answered, (0.0, 1.0))][0]
            raise InputError(f"outcomes of a classification are 0 (right) or 1 (wrong); got {bad}")

    @property
    def answered(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.outcomes)

    @property
    def response(self) -> float:
        """The share of draws that have an answer."""
        return float(self.answered.mean()) if len(self.draw) else 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated quantity of the whole frame with its two-sided interval.

    ``n`` counts draws (an input drawn twice counts twice) and ``response`` is the share of them that was answered.
    ``quantity`` says what it is of: the accuracy (1 − mean outcome) of a classifier, the mean squared error (the mean
    outcome) of a regression. ``method`` names design and interval.
    ``provisional`` is true while answers may still come. ``notes`` say in plain words what a reader must know,
    for instance why an interval is wide. ``standard_error`` is None where the design gives none.
    """

    value: float
    low: float
    high: float
    n: int
    frame_size: int
    response: float
    method: str
    level: float = 0.95
    quantity: Quantity = ACCURACY
    standard_error: float | None = None
    provisional: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise InputError(
                f"an interval holds its estimate; got {self.low} <= {self.value} <= {self.high} from {self.method}"
            )
        if not 0 < self.level < 1:
            raise InputError(f"level must lie strictly between 0 and 1; got {self.level}")

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Task:
    """One input to label. ``payload`` is what the annotator sees; the model's answer is not in it."""

    id: int
    monitor: str
    round: int
    input_id: str
    payload: Mapping[str, Json]
    key: str = ""
    """Names the task and the database that asked (:mod:`opmon.store.task_keys`): an answer is bound by it."""
    classes: tuple[str, ...] = ()
    """What may be answered; empty where that is a number, or not known."""
    due_at: datetime | None = None
    """When its round is estimated with the answers there are."""


@dataclass(frozen=True, slots=True)
class Label:
    """What an annotator said of a task: the truth, or None for "I cannot tell" (a skip)."""

    task_id: int
    annotator: str
    truth: str | None
    at: datetime

    def __post_init__(self) -> None:
        _require_aware(self.at, "at")


@dataclass(frozen=True, slots=True)
class Said:
    """What an annotator said, as a label provider tells it; ``truth`` is None for a skip.

    The task is named by its key; by the input alone only where nobody was asked, such as for a truth that comes by
    itself. A correction is said later by the same annotator.
    """

    task_key: str | None
    annotator: str
    truth: str | None
    at: datetime
    input_id: str | None = None

    def __post_init__(self) -> None:
        _require_aware(self.at, "at")
        if self.task_key is None and self.input_id is None:
            raise InputError("an answer names its task_key, or its input_id")


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a label provider has heard since it was last asked, in the order in which it was said."""

    said: Sequence[Said]
    cursor: str
    """What to ask with the next time."""
    problems: Sequence[str] = ()
    """What could not be read, and why; it is told to the user."""


VerdictState = Literal["ok", "alarm", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule concluded from the estimates. ``message`` explains it to the person who is woken up."""

    rule: str
    state: VerdictState
    message: str
    value: float | None = None
    threshold: float | None = None
    details: Document = field(default_factory=dict)
    """Evidence so far and whatever else the rule wants kept; must be representable as JSON."""

    @property
    def word(self) -> str:
        """The state in a word, as it is shown: what is advised stands for no alarm, and is not "ok" either."""
        return "advice" if self.state != "unknown" and self.details.get("advice") else self.state


def _require_aware(moment: datetime, name: str) -> None:
    if moment.tzinfo is None:
        raise InputError(f"{name} must carry a time zone; got {moment.isoformat()} without one")
