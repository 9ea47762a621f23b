"""The auxiliary variables that are computed inside the model's graph, one head per file.

A head has the method ``nodes(graph) -> str | None``: it adds ONNX nodes to a
:class:`~opmon.scoring.graph.monitor_graph.MonitorGraph` and names the float32 tensor with one value per input, larger =
more suspicious. A head that cannot be a graph (or not for this model, where it returns None) has
``function(reference)``, which returns a NumPy function of the activations and the predicted classes of a batch.
"""

from __future__ import annotations
