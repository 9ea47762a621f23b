"""The variable ``outside``: how far an input lies outside of what nearly all training inputs were like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opmon.abc import Head, Training
from opmon.types import Array

if TYPE_CHECKING:
    from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class Outside(Head):
    """The mean over an input's numbers of how far each lies outside of the middle ``share`` of its column.

    In training, in widths of that middle. It is learned by ``opmon reference``, and computed in the model's own graph.
    """

    share: float = 0.9

    @property
    def fitted_as(self) -> str:
        return f"outside-{self.share:g}"

    def fit(self, training: Training, seed: int) -> Mapping[str, Array]:
        tail = (1 - self.share) / 2
        low, high = np.nanquantile(training.inputs, [tail, 1 - tail], axis=0)
        width = np.maximum(high - low, 1e-6 * np.abs(high).max() + 1e-30)
        return {name: values.astype(np.float32) for name, values in (("low", low), ("high", high), ("width", width))}

    def nodes(self, graph: MonitorGraph) -> str:
        nodes, learned = graph.nodes, graph.learned(self.fitted_as)
        low, high, width = (nodes.constant(learned[name]) for name in ("low", "high", "width"))
        x = nodes.cast(nodes.add("Flatten", [graph.input], axis=1), np.float32)
        below, above = nodes.add("Sub", [low, x]), nodes.add("Sub", [x, high])
        beyond = nodes.add("Max", [below, above, nodes.constant(0.0, np.float32)])
        return nodes.reduce("ReduceMean", nodes.add("Div", [beyond, width]), [1])
