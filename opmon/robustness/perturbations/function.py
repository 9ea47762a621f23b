"""A perturbation of one's own, named as ``module:function``."""

from __future__ import annotations

import importlib

from opmon.errors import PluginError
from opmon.robustness.perturbations.base import Custom


def by_path(path: str) -> Custom:
    """The function ``(inputs, severity, rng) -> inputs`` at ``module:function``; it may change them in place."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise PluginError(f"a function is named as module:function, such as mine.weather:fog; got {path!r}")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as exc:
        raise PluginError(f"there is no perturbation {path!r}: {exc}; is its module installed?") from exc
    if not callable(function):
        raise PluginError(f"{path!r} is no function; it takes (inputs, severity, rng) and gives the changed inputs")
    return Custom(function)
