"""PyTorch models: exported to ONNX, and asked, in a process of their own, which runs the code that is in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from opmon.abc import Network
from opmon.ceiling import lift
from opmon.errors import ModelError
from opmon.types import Array
from opmon.waiting import ends_within

_LONGEST = 900
"""Seconds that the export of a large network, or a thousand answers of it, may take."""


def exported(network: Network) -> bytes:
    """The network as ONNX; a ModelError says why it cannot be exported."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        _run(network, "export", path)
        return path.read_bytes()


def outputs_of(network: Network, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The network's own outputs for some inputs, by the names that they have in the exported graph."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **tensors)  # type: ignore[arg-type]  # the names are the arrays', not those of its keywords
        _run(network, "answer", given, found)
        with np.load(found, allow_pickle=False) as kept:
            return dict(kept)


def _run(network: Network, what: str, *paths: Path) -> None:
    """Let the script do it; a ModelError with its last words where it does not.

    The folder of the script is not where the model looks for modules of its own (``-P``).
    """
    command = [sys.executable, "-P", str(network.script), str(network.model), what, *map(str, paths)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - running the model is what is asked for
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        lift(process.pid)
        try:
            with ends_within(_LONGEST):
                code = process.wait(_LONGEST)
        except subprocess.TimeoutExpired as exc:
            raise ModelError(f"it takes longer than {_LONGEST // 60} minutes") from exc
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)  # what the model has started
            process.wait()
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    if code:
        raise ModelError(_reason(lines[-1] if lines else "", code))


def _reason(last: str, code: int) -> str:
    if "No module named 'torch'" in last or "No module named 'onnxscript'" in last:
        return "torch and onnxscript are not both installed here: run pip install 'opmon[torch]'"
    return last.removeprefix("ValueError: ") or f"its process ended with code {code}"
