"""ONNX Runtime, and nothing else imports it: a model on the device asked for, or an error that says why not."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opmon.errors import InputError, ModelError

Device = Literal["auto", "cpu", "cuda"]
DEVICES: tuple[str, ...] = ("auto", "cpu", "cuda")

_log = logging.getLogger(__name__)
_CUDA, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_QUIET, _WARNING = 4, 2


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model: ``kind`` as ONNX Runtime writes it, None for a dimension that may vary."""

    name: str
    kind: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclass(frozen=True, slots=True)
class Session:
    """A model ready to run."""

    device: str
    providers: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    _session: Any
    bound: bool = False
    """Whether inputs and outputs are bound to the device's memory: for a GPU."""

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        try:
            results: list[Any] = (self._bound if self.bound else self._session.run)(list(outputs), dict(feeds))
        except Exception as exc:  # ONNX Runtime's errors have no common class but Exception
            given = ", ".join(f"{name} {value.dtype}{list(value.shape)}" for name, value in feeds.items())
            wanted = ", ".join(map(str, self.inputs))
            raise ModelError(f"the model does not run on {given}; it takes {wanted}: {_first_line(exc)}") from exc
        return results

    def _bound(self, outputs: list[str], feeds: dict[str, Any]) -> list[Any]:
        """One copy to the device and one back; what stays inside never leaves it."""
        binding = self._session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        for name in outputs:
            binding.bind_output(name, self.device)
        self._session.run_with_iobinding(binding)
        found: list[Any] = binding.copy_outputs_to_cpu()
        return found


def open_session(
    model: Path | bytes, device: Device = "auto", threads: int | None = None, folder: Path | None = None
) -> Session:
    """Load a model; ``threads`` None uses all cores. ``folder`` holds the weights of a graph given as bytes.

    ``cuda`` raises ModelError where the GPU cannot be used, naming what is missing. ``auto`` takes the GPU where there
    is one and the CPU otherwise, and says so once. What counts are the providers of the session, not those asked for.
    """
    if device not in DEVICES:
        raise InputError(f"device must be one of {', '.join(DEVICES)}; got {device!r}")
    if threads is not None and threads < 1:
        raise InputError(f"threads must be at least 1, or left out for all cores; got {threads}")
    if device == "cpu":
        return _described(_load(model, [_CPU], threads, folder))
    missing = cuda_missing()
    if missing is None:
        session = _load(model, [_CUDA, _CPU], threads, folder)
        if _CUDA in session.get_providers():
            return _described(session)
        missing = (
            "the CUDA libraries (CUDA 13, cuDNN 9) cannot be loaded: pip install 'opmon[cuda]', or put the system's "
            "into LD_LIBRARY_PATH"
        )
    if device == "cuda":
        raise ModelError(f"device: cuda was asked for and cannot be used: {missing}. device: cpu runs without a GPU.")
    _say_once(f"scoring on the CPU: {missing}")
    return _described(_load(model, [_CPU], threads, folder))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cuda_missing() -> str | None:
    """What keeps this machine from scoring on a GPU, and how to get it; None where nothing obvious does."""
    ort = _onnxruntime()
    if _CUDA not in ort.get_available_providers():
        return (
            "the installed onnxruntime is built without CUDA: pip uninstall onnxruntime onnxruntime-gpu, then "
            "pip install onnxruntime-gpu (one of the two alone: together they lose the GPU)"
        )
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver (libcuda.so.1): install the driver, or start the container with --gpus all"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(AttributeError, OSError):
        ort.preload_dlls()  # finds the libraries that pip installed; prints where it does not
    return None


@functools.cache
def _onnxruntime() -> Any:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # must be there before the import
    import onnxruntime

    return onnxruntime


@functools.cache
def _say_once(message: str) -> None:
    _log.info(message)


def _load(model: Path | bytes, providers: Sequence[str], threads: int | None, folder: Path | None) -> Any:
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.log_severity_level = _QUIET
    if folder is not None and isinstance(model, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if threads is not None:
        options.intra_op_num_threads = threads
    ort.set_default_logger_severity(_QUIET)  # a GPU that is not there is told by us, in one line
    try:
        source = model if isinstance(model, bytes) else str(model)
        return ort.InferenceSession(source, sess_options=options, providers=list(providers))
    except Exception as exc:  # ONNX Runtime's errors have no common class but Exception
        raise ModelError(_why_not(exc)) from exc
    finally:
        ort.set_default_logger_severity(_WARNING)


def _why_not(exc: Exception) -> str:
    text = str(exc)
    hint = "is it a whole ONNX file?"
    if "IR version" in text:
        hint = "update onnxruntime, or write the model again with an older IR version (model.ir_version = 10)"
    elif "pset" in text:
        hint = "update onnxruntime, or export the model again with an older opset"
    elif "not a registered function" in text or "NOT_IMPLEMENTED" in text:
        hint = "it uses an operator that this ONNX Runtime does not have; export it with standard operators"
    return f"ONNX Runtime {_onnxruntime().__version__} cannot load the model: {hint} ({_first_line(exc)})"


def _described(session: Any) -> Session:
    providers = tuple(session.get_providers())
    return Session(
        device="cuda" if _CUDA in providers else "cpu",
        providers=providers,
        inputs=tuple(_tensor(item) for item in session.get_inputs()),
        outputs=tuple(_tensor(item) for item in session.get_outputs()),
        _session=session,
        bound=_CUDA in providers and not any("string" in item.type for item in session.get_inputs()),
    )


def _tensor(item: Any) -> Tensor:
    kind = str(item.type).removeprefix("tensor(").removesuffix(")") if item.type.startswith("tensor(") else item.type
    return Tensor(item.name, kind, tuple(size if isinstance(size, int) else None for size in item.shape or ()))


def _first_line(exc: Exception) -> str:
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    return lines[0] if len(lines[0]) <= 400 else f"{lines[0][:397]}..."
