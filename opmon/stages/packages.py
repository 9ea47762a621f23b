"""Which versions of packages a round was worked on with."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("opmon", "numpy", "onnx", "onnxruntime", "onnxruntime-gpu", "mlflow", "mlflow-skinny")


def installed(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """The versions of those that are there: what a distribution is split into changes, and no round depends on it.

    >>> installed(["numpy", "no-such-package"]).keys()
    dict_keys(['numpy'])
    """
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
