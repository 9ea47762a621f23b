"""opmon: how accurate is the model in production today, how sure are we, and when must we retrain?

>>> import opmon
>>> opmon.__version__
'...'

Heavy parts are imported when they are first used: ``opmon.Monitor`` brings in SQL and MLflow, ``opmon.samplers`` and
``opmon.estimators`` only NumPy and SciPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opmon.config import Settings
    from opmon.errors import OpmonError
    from opmon.monitor import Monitor
    from opmon.recorder import Recorder
    from opmon.retraining import load_failures
    from opmon.stages.cycle import Cycle
    from opmon.types import Draw, Estimate, Frame, Label, Sample, Task, Verdict

    __version__: str

_PUBLIC = {
    "Cycle": "opmon.stages.cycle",
    "Draw": "opmon.types",
    "Estimate": "opmon.types",
    "Frame": "opmon.types",
    "Label": "opmon.types",
    "Monitor": "opmon.monitor",
    "OpmonError": "opmon.errors",
    "Recorder": "opmon.recorder",
    "Sample": "opmon.types",
    "Settings": "opmon.config",
    "Task": "opmon.types",
    "Verdict": "opmon.types",
    "load_failures": "opmon.retraining",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("opmon")
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'opmon' has no attribute {name!r}; it has: {', '.join(sorted(_PUBLIC))}")


def __dir__() -> list[str]:
    return sorted(__all__)
