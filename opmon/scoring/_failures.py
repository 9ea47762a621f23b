"""The meaning of ONNX Runtime's errors: they have no common class but Exception, and are told apart by their words."""

from __future__ import annotations

import re

from opmon.scoring.devices import Providers, short_name

_LONGEST = 400
_SHORTAGE = re.compile(
    r"failed to allocate memory|out of memory|ALLOC_FAILED|bad_?alloc|MemoryAllocation|"
    r"available memory of \S+ is smaller|not enough (gpu )?memory",
    re.IGNORECASE,
)
"""As its arenas, CUDA and the libraries of it, and C++ say it."""


def is_shortage(exc: Exception) -> bool:
    """Whether a smaller batch may go where this one did not."""
    return isinstance(exc, MemoryError) or _SHORTAGE.search(str(exc)) is not None


def why_not_loaded(exc: Exception, version: str, providers: Providers) -> str:
    """Advice on a model that ONNX Runtime does not load."""
    text, where = str(exc), "".join(f" on {short_name(name)}" for name in providers.wanted[:1])
    hint = "is it a whole ONNX file?"
    if "IR version" in text:
        hint = "update onnxruntime, or write the model again with an older IR version (model.ir_version = 10)"
    elif "pset" in text:
        hint = "update onnxruntime, or export the model again with an older opset"
    elif "not a registered function" in text or "NOT_IMPLEMENTED" in text:
        hint = "it uses an operator that this ONNX Runtime does not have; export it with standard operators"
    elif is_shortage(exc):
        hint = "it does not fit into the memory; a higher limit, another device_id or device: cpu may help"
    elif providers.wanted:
        hint = "are its libraries there, and the options of device right? device: cpu runs without them"
    return f"ONNX Runtime {version} cannot load the model{where}: {hint} ({first_line(exc)})"


def first_line(exc: Exception) -> str:
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    return lines[0] if len(lines[0]) <= _LONGEST else f"{lines[0][: _LONGEST - 3]}..."
