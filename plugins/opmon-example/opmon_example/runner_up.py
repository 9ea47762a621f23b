"""The variable ``runner_up``: how near the second class comes to the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from opmon.abc import Head

if TYPE_CHECKING:
    from opmon.scoring.graph.monitor_graph import MonitorGraph


@dataclass(frozen=True)
class RunnerUp(Head):
    """``p₂ / p₁`` with p₁ ≥ p₂ the two greatest probabilities: 1 where the model cannot decide."""

    of_classes: ClassVar[bool] = True

    def nodes(self, graph: MonitorGraph) -> str:
        first, second = graph.largest
        return graph.nodes.add("Div", [second, first])
