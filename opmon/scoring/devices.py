"""Devices to run a model on: ONNX Runtime's execution providers, in order, with their options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from opmon.errors import InputError
from opmon.wording import meant, nearest

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
DEVICES: tuple[str, ...] = ("auto", "cpu", "cuda")
NAMES: Mapping[str, str] = {
    "cpu": CPU,
    "cuda": CUDA,
    "tensorrt": TENSORRT,
    "nvtensorrtrtx": "NvTensorRTRTXExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
}
"""Short names of the providers; any other is written as ONNX Runtime has it, …ExecutionProvider."""
DEFAULTS: Mapping[str, Mapping[str, str]] = {CUDA: {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}}
"""The options of each provider unless the user sets others. TF32 leaves ten bits of a number, too few for distances
between activations; a search by trying picks another algorithm, and other last bits, from run to run."""
_SUFFIX = "ExecutionProvider"
_BYTES = ("_mem_limit", "_workspace_size")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?b|b)?", re.IGNORECASE)


@dataclass(frozen=True)
class Providers:
    """Execution providers in order of preference, by ONNX Runtime's names, each with its options as text.

    The CPU is always the last: it takes the operators that the others do not have.
    """

    names: tuple[str, ...]
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, names: Sequence[str], options: Mapping[str, Mapping[str, str | float | bool]] | None = None
    ) -> Providers:
        """The providers called by short names or ONNX Runtime's own; ``options`` by provider.

        >>> Providers.of(["cuda"], {"cuda": {"device_id": 1}}).names
        ('CUDAExecutionProvider', 'CPUExecutionProvider')
        """
        chosen = tuple(dict.fromkeys(full_name(name) for name in names))
        if not chosen:
            raise InputError(f"providers must name at least one: {', '.join(NAMES)}")
        given: dict[str, dict[str, str]] = {}
        for name, values in (options or {}).items():
            provider = full_name(name)
            if provider not in chosen or provider == CPU:
                named = ", ".join(short_name(item) for item in chosen if item != CPU) or "none"
                raise InputError(f"there are options for {name!r}; the providers named that take options are: {named}")
            given[provider] = {key: _text(key, value) for key, value in values.items()}
        return cls((*(name for name in chosen if name != CPU), CPU), given)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The providers beside the CPU."""
        return self.names[:-1]

    def options_of(self, name: str) -> dict[str, str]:
        """The options of one of them, opmon's own defaults among them."""
        return {**DEFAULTS.get(name, {}), **self.options.get(name, {})}

    @property
    def device_id(self) -> int:
        """The number of the accelerator, of those that there are."""
        numbers = [self.options_of(name).get("device_id") for name in self.wanted]
        return next((int(number) for number in numbers if number is not None), 0)


Device = Literal["auto", "cpu", "cuda"] | Providers


def full_name(name: str) -> str:
    """ONNX Runtime's name of a provider.

    >>> full_name("cuda")
    'CUDAExecutionProvider'
    """
    if name.endswith(_SUFFIX) and name != _SUFFIX:
        return name
    provider = NAMES.get(name.lower())
    if provider is None:
        hint = meant(nearest(name.lower(), NAMES))
        raise InputError(
            f"there is no provider {name!r}{hint}; they are: {', '.join(NAMES)}, or ONNX Runtime's own name of another "
            f"(…{_SUFFIX})"
        )
    return provider


def short_name(provider: str) -> str:
    """The name of a provider for users.

    >>> short_name("CPUExecutionProvider")
    'cpu'
    """
    return next((name for name, full in NAMES.items() if full == provider), provider.removesuffix(_SUFFIX).lower())


def _text(key: str, value: str | float | bool) -> str:
    """An option as ONNX Runtime takes it."""
    if key.endswith(_BYTES):
        return str(amount(key, value))
    text = str(int(value)) if isinstance(value, bool) else str(value)
    if key == "device_id" and not text.isdigit():
        raise InputError(f"device_id must be the number of a device, such as 0; got {value!r}")
    return text


def amount(key: str, value: str | float | bool) -> int:
    """Bytes, as a number or with a unit.

    >>> amount("memory", "4 GB"), amount("memory", 1024)
    (4000000000, 1024)
    """
    match = _AMOUNT.fullmatch(str(value).strip())
    number = 0 if match is None else int(float(match[1]) * _UNITS[(match[2] or "B").upper()])
    if number < 1:
        raise InputError(f"{key} must be bytes, such as 4 GB; got {value!r}")
    return number
