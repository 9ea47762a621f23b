"""Confidence: how far the greatest probability is from 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head
from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class Confidence(Head):
    """``1 − p₁`` with p₁ the greatest probability; of one output neuron o it is ``1 − max(o, 1 − o)``."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        nodes = graph.nodes
        return nodes.add("Sub", [nodes.constant(1.0, np.float32), graph.largest[0]])
