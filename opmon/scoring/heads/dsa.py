"""Distance-based surprise adequacy (SADL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from opmon.abc import ArrayFunction, Head
from opmon.errors import InputError, ModelError
from opmon.problems import traits
from opmon.scoring.graph.monitor_graph import MonitorGraph
from opmon.scoring.heads import _dsa
from opmon.scoring.heads.dsa_sorted import sorted_function
from opmon.scoring.reference.fitted import Reference, required


@dataclass(frozen=True)
class DistanceSurprise(Head):
    """``DSA(x) = dist_a / dist_b`` (Kim et al., ICSE 2019, equations 3 to 5).

    ``a(x)`` is the activation trace of input x, c its predicted class, ``ref`` the training trace predicted as c that
    is nearest to ``a(x)``; ``dist_a = ‖a(x) − ref‖``. With ``denominator="reference"``, as SADL has it, ``dist_b`` is
    the distance from ``ref`` to the nearest training trace predicted as another class; with ``"input"``, as DeepSample
    words it, it is measured from ``a(x)``.

    The value is brought to 0…1 with the limits on the training data. A class that training never predicted is as
    surprising as can be. Traces that two classes share make ``dist_b`` zero: it is at least a millionth of its median.
    """

    of_classes: ClassVar[bool] = True

    denominator: Literal["reference", "input"] = "reference"
    """From where the distance to another class is measured."""

    def __post_init__(self) -> None:
        if self.denominator not in ("reference", "input"):
            raise InputError(f"denominator must be reference or input; got {self.denominator!r}")

    def nodes(self, graph: MonitorGraph) -> str | None:
        _required(graph.reference)
        outside = graph.sorted_outside and self.denominator == "reference"
        return None if outside else self.inside(graph)

    def inside(self, graph: MonitorGraph) -> str:
        """The variable as a tensor of the graph, however many classes there are."""
        reference, _ = _required(graph.reference), graph.layer
        return graph.once(self, lambda: graph.normalised(self._raw(graph, reference), self.limits(reference)))

    def function(self, reference: Reference | None) -> ArrayFunction:
        """The variable in NumPy, for large batches and many classes; only with ``denominator="reference"``."""
        fitted = _required(required(reference))
        return sorted_function(fitted, self.limits(fitted))

    def limits(self, reference: Reference) -> tuple[float, float] | None:
        return reference.limits.get(f"dsa:{self.denominator}")

    def _raw(self, graph: MonitorGraph, reference: Reference) -> str:
        if self.denominator == "input":
            return _dsa.from_input(graph, reference)
        return _dsa.from_reference(graph, reference)


def _required(reference: Reference) -> Reference:
    if not traits(reference.problem).one_class:
        raise ModelError("dsa compares predicted classes, and a regression model has none; lsa is for both")
    if len(reference.classes) < 2:
        raise ModelError(
            "dsa needs training inputs of at least two predicted classes, and the reference has "
            f"{len(reference.classes)}; fit it on more of the training data"
        )
    return reference
