"""Which versions of packages a round was worked on with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("opmon", "numpy", "onnx", "onnxruntime", "onnxruntime-gpu", "mlflow", "mlflow-skinny")


def installed(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """The versions of those that are there: what a distribution is split into changes, and no round depends on it.

    >>> installed(["numpy", "no-such-package"]).keys()
    dict_keys(['numpy'])
    """
    found = {name: _version(name) for name in names}
    return {name: number for name, number in found.items() if number is not None}


@cache
def _version(name: str) -> str | None:
    """The version that this process runs, looked up once; None where there is no such package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
