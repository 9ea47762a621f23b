"""Entropy of the probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head
from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class Entropy(Head):
    """``−Σ p log p``; an impossible class adds nothing."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        nodes, p = graph.nodes, graph.probabilities
        least = nodes.constant(np.finfo(np.float32).tiny, np.float32)
        logarithm = nodes.add("Log", [nodes.add("Max", [p, least])])
        return nodes.add("Neg", [nodes.reduce("ReduceSum", nodes.add("Mul", [p, logarithm]), [1])])
