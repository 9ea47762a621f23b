"""Gini impurity of the probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head
from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class Gini(Head):
    """``1 − Σ p²`` (DeepGini; Feng et al., ISSTA 2020, section 3)."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        nodes, p = graph.nodes, graph.probabilities
        return nodes.add("Sub", [nodes.constant(1.0, np.float32), nodes.reduce("ReduceSumSquare", p, [1])])
