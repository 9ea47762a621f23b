"""Confidence and DSA in one variable (DeepEST)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmon.abc import Head
from opmon.scoring.graph.monitor_graph import MonitorGraph
from opmon.scoring.heads.dsa import DistanceSurprise


@dataclass(frozen=True)
class Combined(Head):
    """``χ = 1 − p₁·(1 − DSA)``, p₁ the greatest probability, DSA brought to 0…1 (Guerriero et al., ICSE 2021)."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        surprise = DistanceSurprise().inside(graph)
        nodes = graph.nodes
        one = nodes.constant(1.0, np.float32)
        bounded = nodes.clip(surprise, 0.0, 1.0)
        trust = nodes.add("Mul", [graph.largest[0], nodes.add("Sub", [one, bounded])])
        return nodes.add("Sub", [one, trust])
