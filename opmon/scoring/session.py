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
from types import ModuleType
from typing import TYPE_CHECKING

from opmon.errors import EndlessModel, InputError, ModelError, OutOfMemory
from opmon.scoring._deadlines import RUN_SECONDS, Run, deadlines
from opmon.scoring._failures import first_line, is_shortage, why_not_loaded
from opmon.scoring.devices import CUDA, DEVICES, TENSORRT, Device, Providers, short_name
from opmon.scoring.placement import Placement
from opmon.types import Array

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, NodeArg, RunOptions
_log = logging.getLogger(__name__)
_QUIET, _WARNING = 4, 2


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model: ``kind`` as ONNX Runtime writes it, None for a dimension that may vary."""

    name: str
    kind: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"

    @property
    def is_numeric(self) -> bool:
        """Whether it is a tensor of numbers: text, sequences and dictionaries live in the CPU's memory alone."""
        return self.kind != "string" and "(" not in self.kind


@dataclass(frozen=True, slots=True)
class Session:
    """A model ready to run."""

    device: str
    """The device that most of its operators run on: ``cpu``, ``cuda`` …"""
    placement: Placement
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    _session: InferenceSession
    threads: int | None = None
    """The number of threads of its part on the CPU; None for all cores."""
    bound: tuple[str, int] | None = None
    """The device and its number whose memory inputs and outputs are bound to: for a GPU."""

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """The values of ``outputs``; :class:`OutOfMemory` where a smaller batch may fit."""
        options = _onnxruntime().RunOptions()
        run: Run | None = None
        try:
            with deadlines.within(options, RUN_SECONDS) as run:
                if self.bound is not None and self._can_bind(outputs):
                    return self._run_bound(outputs, feeds, options, *self.bound)
                results: list[Array] = self._session.run(list(outputs), dict(feeds), options)
        except Exception as exc:  # ONNX Runtime's errors have no common class but Exception
            given = ", ".join(f"{name} {value.dtype}{list(value.shape)}" for name, value in feeds.items())
            if run is not None and run.stopped_for == "time":
                raise EndlessModel(
                    f"the model did not end within {RUN_SECONDS:g} s on {given} and was stopped: is there a loop in it?"
                ) from exc
            if options.terminate or is_shortage(exc):
                self._give_back(feeds)
                why = "it was stopped when nearly all memory was taken" if options.terminate else first_line(exc)
                raise OutOfMemory(
                    f"the memory of the device ({self.device}) does not suffice for {given}: {why}"
                ) from exc
            wanted = ", ".join(map(str, self.inputs))
            raise ModelError(f"the model does not run on {given}; it takes {wanted}: {first_line(exc)}") from exc
        return results

    def _give_back(self, feeds: Mapping[str, Array]) -> None:
        """Return what ONNX Runtime keeps for the next run, which it does after a run: one that ends where it begins."""
        if self.bound is not None:
            return
        options = _onnxruntime().RunOptions()
        options.terminate = True
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        with contextlib.suppress(Exception):  # it always fails, by the flag
            self._session.run(None, dict(feeds), options)

    def _can_bind(self, outputs: Sequence[str]) -> bool:
        """Whether all that goes in and out are numbers: ONNX Runtime ends the process where a bound output is text."""
        asked = [item for item in self.outputs if item.name in outputs]
        return all(item.is_numeric for item in (*self.inputs, *asked))

    def _run_bound(
        self, outputs: Sequence[str], feeds: Mapping[str, Array], options: RunOptions, device: str, number: int
    ) -> list[Array]:
        """Run with one copy to the device and one back; what stays inside never leaves it."""
        binding = self._session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        for name in outputs:
            binding.bind_output(name, device, number)
        self._session.run_with_iobinding(binding, options)
        results: list[Array] = binding.copy_outputs_to_cpu()
        return results


def open_session(
    model: Path | bytes, device: Device = "auto", threads: int | None = None, folder: Path | None = None
) -> Session:
    """Load a model; ``threads`` None uses all cores. ``folder`` holds the weights of a graph given as bytes.

    A provider that is asked for by name and cannot be used, or takes none of the model's operators, raises ModelError,
    which says why. ``auto`` takes the GPU where there is one and it has work to do, the CPU otherwise, and says so
    once. What counts is where the operators were placed, not what was asked for.
    """
    if not isinstance(device, Providers) and device not in DEVICES:
        raise InputError(f"device must be one of {', '.join(DEVICES)}, or providers with options; got {device!r}")
    if threads is not None and threads < 1:
        raise InputError(f"threads must be at least 1, or left out for all cores; got {threads}")
    if device == "auto":
        return _on_gpu_or_cpu(model, threads, folder)
    named = device if isinstance(device, Providers) else Providers.of([device])
    for provider in named.wanted:
        missing = provider_missing(provider)
        if missing is not None:
            raise _not_usable(provider, missing)
    opened = _described(_load(model, named, threads, folder), named, threads)
    for provider in named.wanted:
        if provider not in opened.placement.providers:
            raise _not_usable(provider, _libraries(provider))
    if named.wanted and not opened.placement.beside_cpu:
        raise ModelError(
            f"device: none of the model's {opened.placement.total} operators runs on "
            f"{', '.join(map(short_name, named.wanted))} ({opened.placement.on_cpu}). Set device: cpu for this model."
        )
    return opened


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def provider_missing(provider: str) -> str | None:
    """The reason why this machine cannot use a provider, and the remedy; None where there is no obvious one."""
    ort = _onnxruntime()
    available = ort.get_available_providers()
    if provider not in available and provider in (CUDA, TENSORRT):
        return (
            "the installed onnxruntime is built without CUDA: pip uninstall onnxruntime onnxruntime-gpu, then "
            "pip install onnxruntime-gpu (one of the two alone: together they lose the GPU)"
        )
    if provider not in available:
        return (
            f"the installed onnxruntime is built without it, and has {', '.join(map(short_name, available))}: install "
            f"the build of onnxruntime that has it, in the place of this one"
        )
    return _driver_missing(ort) if provider in (CUDA, TENSORRT) else None


def _driver_missing(ort: ModuleType) -> str | None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver (libcuda.so.1): install the driver, or start the container with --gpus all"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(AttributeError, OSError):
        ort.preload_dlls()  # finds the libraries that pip installed; prints where it does not
    return None


def _on_gpu_or_cpu(model: Path | bytes, threads: int | None, folder: Path | None) -> Session:
    missing = provider_missing(CUDA)
    if missing is None:
        cuda = Providers.of(["cuda"])
        opened = _described(_load(model, cuda, threads, folder), cuda, threads)
        if opened.placement.beside_cpu:
            return opened
        missing = _libraries(CUDA)
        if CUDA in opened.placement.providers:
            missing = f"none of the model's operators runs on the GPU ({opened.placement.on_cpu})"
        del opened
    _say_once(f"scoring on the CPU: {missing}")
    cpu = Providers.of(["cpu"])
    return _described(_load(model, cpu, threads, folder), cpu, threads)


def _not_usable(provider: str, missing: str) -> ModelError:
    return ModelError(
        f"device: {short_name(provider)} was asked for and cannot be used: {missing}. device: cpu runs without it."
    )


def _libraries(provider: str) -> str:
    if provider == CUDA:
        return (
            "the CUDA libraries (CUDA 13, cuDNN 9) cannot be loaded: pip install 'opmon[cuda]', or put the system's "
            "into LD_LIBRARY_PATH"
        )
    return "onnxruntime has it and cannot start it, for want of its libraries, its device, or options that it knows"


@functools.cache
def _onnxruntime() -> ModuleType:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # must be there before the import
    import onnxruntime

    module: ModuleType = onnxruntime
    return module


@functools.cache
def _say_once(message: str) -> None:
    _log.info(message)


def _load(model: Path | bytes, providers: Providers, threads: int | None, folder: Path | None) -> InferenceSession:
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.log_severity_level = _QUIET
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if folder is not None and isinstance(model, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    if threads is not None:
        options.intra_op_num_threads = threads
    ort.set_default_logger_severity(_QUIET)  # a GPU that is not there is told by us, in one line
    try:
        source = model if isinstance(model, bytes) else str(model)
        asked = [(name, providers.options_of(name)) for name in providers.names]
        return ort.InferenceSession(source, sess_options=options, providers=asked, enable_fallback=0)
    except Exception as exc:  # ONNX Runtime's errors have no common class but Exception
        raise ModelError(why_not_loaded(exc, ort.__version__, providers)) from exc
    finally:
        ort.set_default_logger_severity(_WARNING)


def _described(session: InferenceSession, asked: Providers, threads: int | None) -> Session:
    """The session, and where ONNX Runtime placed the operators."""
    parts = session.get_provider_graph_assignment_info()
    operators = [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
    placement = Placement.of(session.get_providers(), operators)
    on_cuda = placement.device in (short_name(CUDA), short_name(TENSORRT))
    return Session(
        device=placement.device,
        placement=placement,
        inputs=tuple(_tensor(item) for item in session.get_inputs()),
        outputs=tuple(_tensor(item) for item in session.get_outputs()),
        _session=session,
        threads=threads,
        bound=("cuda", asked.device_id) if on_cuda else None,
    )


def _tensor(item: NodeArg) -> Tensor:
    kind = str(item.type).removeprefix("tensor(").removesuffix(")") if item.type.startswith("tensor(") else item.type
    return Tensor(item.name, kind, tuple(size if isinstance(size, int) else None for size in item.shape or ()))
