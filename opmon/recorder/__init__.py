"""Recording a model's inputs where it is served: see :class:`opmon.recorder.recorder.Recorder`."""

from opmon.recorder.recorder import Recorder

__all__ = ["Recorder"]
