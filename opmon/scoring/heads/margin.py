"""Margin: how close the second class comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head
from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class Margin(Head):
    """``1 − (p₁ − p₂)`` with p₁ ≥ p₂ the two greatest probabilities."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        nodes = graph.nodes
        first, second = graph.largest
        return nodes.add("Sub", [nodes.constant(1.0, np.float32), nodes.add("Sub", [first, second])])
