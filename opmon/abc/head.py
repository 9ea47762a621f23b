"""The contract of heads, the auxiliary variables of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from opmon.abc.plugin import Plugin
from opmon.errors import PluginError
from opmon.types import Array, Numbers

if TYPE_CHECKING:
    from pathlib import Path

    from opmon.scoring.graph.monitor_graph import MonitorGraph
    from opmon.scoring.reference.fitted import Reference


ArrayFunction = Callable[[NDArray[np.float32], NDArray[np.int64]], Numbers]
"""``(activations, predicted class) -> value`` of the inputs of a batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Training data that went through the model, for a variable that learns from it: random samples of each."""

    inputs: Array
    """One row for each input: what the model was given, flat."""
    activations: NDArray[np.float32]
    """The traced layer's neurons for other inputs, one row each; without columns where no layer is traced."""
    predicted: NDArray[np.int64]
    """The class that the model predicts for each of ``activations``."""


class Head(Plugin):
    """An auxiliary variable: one number per input, larger = more suspicious.

    It is computed in the model's graph (:meth:`nodes`), or, where it cannot be, in NumPy (:meth:`function`). One that
    learns from training data says so by :attr:`fitted_as`, and finds what :meth:`fit` gave in the reference. It goes
    with the jobs of a round to wherever they run, and must be picklable.
    """

    of_classes: ClassVar[bool] = False
    """Whether it needs a model that tells classes apart."""

    def bind(self, fetch: Callable[[str], Path]) -> Self:
        """Return the head with the registry's models that it names as files on this machine, by ``fetch(uri)``."""
        return self

    @property
    def fitted_as(self) -> str | None:
        """The name under which the reference keeps what it learns; None where it learns nothing.

        ``opmon reference`` fits it, and the graph's ``learned`` and the reference's ``weights`` have it.
        """
        return None

    def fit(self, training: Training, seed: int) -> Mapping[str, Array]:
        """The named arrays that it learns; the same data and seed give the same ones."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it is computed from, by :meth:`of_columns`; none where the model tells it."""
        return ()

    def of_columns(self, values: Mapping[str, Array]) -> Numbers:
        """The variable of some inputs from their numbers in :attr:`columns`, NaN where one is missing."""
        raise PluginError(f"{type(self).__name__} names the columns {self.columns} and has no of_columns() for them")

    def nodes(self, graph: MonitorGraph) -> str | None:
        """Add ONNX nodes to the :class:`~opmon.scoring.graph.monitor_graph.MonitorGraph` and name the float32 tensor of
        one value per input; None where this is no graph, or not for this model."""
        return None

    def function(self, reference: Reference | None) -> ArrayFunction | None:
        """The variable as a NumPy function, given the fitted
        :class:`~opmon.scoring.reference.fitted.Reference` where there is one; None where there is no such function."""
        return None
