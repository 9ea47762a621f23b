"""The seams of opmon, and how what is plugged into them is found.

A plugin is a class behind an entry point. The built-in ones come through the same door (see ``pyproject.toml``)::

    [project.entry-points."opmon.samplers"]
    srs = "opmon.samplers.srs:SimpleRandom"

The class is called with the hyper-parameters of the configuration as keyword arguments; it should be a frozen
dataclass, so that a wrong name or value is an error when the configuration is read. Nothing is imported before it is
asked for by name.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from opmon.errors import InputError, OpmonError, PluginError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from opmon.decisions.case import Case
    from opmon.scoring.graph.monitor_graph import MonitorGraph
    from opmon.types import Batch, Draw, Estimate, Frame, Sample, Slice, Verdict

GROUPS: Mapping[str, str] = {
    "sampler": "opmon.samplers",
    "estimator": "opmon.estimators",
    "source": "opmon.sources",
    "rule": "opmon.rules",
    "action": "opmon.actions",
    "perturbation": "opmon.perturbations",
    "head": "opmon.heads",
}
"""What can be plugged in, and the entry-point group it is looked for in."""


@runtime_checkable
class Sampler(Protocol):
    """Chooses the inputs worth a label. Pure: the same frame, budget and generator state give the same draw.

    It says what it needs by attributes that it may have: ``variable`` or ``variables`` name the auxiliary variables it
    draws by; ``activation_levels`` (2 to 256) asks for ``frame.activations``, the neurons of the monitor's layer, each
    in so many equal levels of its range over the frame, one byte per neuron and input. See :func:`activation_levels`.
    """

    def draw(self, frame: Frame, budget: int, rng: np.random.Generator) -> Draw:
        """Draw ``budget`` times (fewer where the frame is smaller), in order."""
        ...


@runtime_checkable
class AdaptiveSampler(Sampler, Protocol):
    """A sampler that looks at the labels so far before it goes on. ``draw`` gives the first wave."""

    def next_batch(self, frame: Frame, budget: int, sample: Sample, rng: np.random.Generator) -> Draw:
        """The draw of ``sample`` followed by the next wave; unchanged once ``budget`` is spent."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Turns the outcomes of one design's draws into an estimate with an interval. Pure."""

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate: ...


@runtime_checkable
class Source(Protocol):
    """Reads what production logged. It keeps no state: positions come in, slices go out."""

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """What can be read now and starts where ``positions`` (part -> last stop) end; oldest first.

        About ``limit`` rows at the most, where it is given.
        """
        ...

    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order, the same ones every time it is asked."""
        ...

    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again: for each slice number the row numbers wanted; ordered by slice, then as asked."""
        ...


@runtime_checkable
class Rule(Protocol):
    """Concludes something from the estimates of one model version's rounds, oldest first. Pure."""

    def decide(self, estimates: Sequence[Estimate]) -> Verdict: ...


@runtime_checkable
class SequentialRule(Protocol):
    """A rule that needs more than estimates: the draws of the round, and its own evidence so far. Pure.

    It is asked once for each round, when the round's estimate becomes final. What it puts into the verdict's
    ``details`` it gets back as ``case.before`` with the next round of the same model version. Where a rule has both
    methods, ``judge`` is the one that is called. A class attribute ``advisory = True`` says that its alarms are
    advice, ``counts = True`` that it is asked of rounds without an estimate too.
    """

    def judge(self, case: Case) -> Verdict: ...


@runtime_checkable
class Action(Protocol):
    """Acts on an event. May be called again with the same event: ``event["id"]`` is the idempotency key.

    Raises :class:`opmon.errors.DeliveryError` where the target did not take it.
    """

    def act(self, event: Mapping[str, Any]) -> None: ...


@runtime_checkable
class Head(Protocol):
    """An auxiliary variable that is computed inside the model's graph.

    Where it cannot be (``nodes`` returns None, or there is no such method), the head has
    ``function(reference) -> (activations, predicted) -> values``: NumPy arrays of a batch in, one number per input out.
    """

    def nodes(self, graph: MonitorGraph) -> str | None:
        """Add ONNX nodes to the graph and name the float32 tensor of one value per input; larger = more suspicious."""
        ...


def activation_levels(sampler: Any) -> int | None:
    """In how many levels a sampler wants the neurons of a hidden layer; None where it looks at none."""
    levels = getattr(sampler, "activation_levels", None)
    if levels is not None and (isinstance(levels, bool) or not isinstance(levels, int) or not 2 <= levels <= 256):
        raise PluginError(
            f"{type(sampler).__name__}.activation_levels is a whole number in 2..256, or None; got {levels!r}"
        )
    return levels


def names(kind: str) -> list[str]:
    """The names that can be plugged in as ``kind``."""
    return sorted(_registered(kind))


def load(kind: str, name: str) -> Callable[..., Any]:
    """The class registered as ``name``; a name that is not there or does not import is an error that says so."""
    registered = _registered(kind)
    if name not in registered:
        raise PluginError(_unknown(kind, name, registered))
    entry = registered[name]
    try:
        return entry.load()  # type: ignore[no-any-return]
    except OpmonError:
        raise
    except Exception as exc:  # a plugin may fail in any way; all are told the same way
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) cannot be imported: {type(exc).__name__}: {exc}. "
            f"Install what it needs, or remove it from the configuration."
        ) from exc


def make(kind: str, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """An instance of what is registered as ``name``, made with ``arguments``."""
    factory = load(kind, name)
    arguments = dict(arguments or {})
    allowed = parameters(factory)
    for given in arguments:
        if given not in allowed:
            near = difflib.get_close_matches(given, allowed, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(
                f"{kind} {name!r} has no parameter {given!r}; it has: {', '.join(allowed) or 'none'}.{hint}"
            )
    try:
        return factory(**arguments)
    except OpmonError:
        raise
    except (TypeError, ValueError) as exc:
        raise InputError(f"{kind} {name!r}: {exc}") from exc


def parameters(factory: Callable[..., Any]) -> list[str]:
    """The keyword arguments a plugin takes."""
    if dataclasses.is_dataclass(factory):
        return [f.name for f in dataclasses.fields(factory) if f.init]
    return [name for name in inspect.signature(factory).parameters if name != "self"]


@functools.cache
def _registered(kind: str) -> dict[str, EntryPoint]:
    group = GROUPS.get(kind)
    if group is None:
        raise PluginError(f"there is no kind of plugin {kind!r}; the kinds are: {', '.join(GROUPS)}")
    return {entry.name: entry for entry in entry_points(group=group)}


def _unknown(kind: str, name: str, registered: Mapping[str, EntryPoint]) -> str:
    near = difflib.get_close_matches(name, registered, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    have = ", ".join(sorted(registered)) or "none (is opmon installed? run: pip install opmon)"
    return f"there is no {kind} {name!r}; there are: {have}.{hint}"
