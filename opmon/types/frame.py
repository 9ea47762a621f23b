"""The inputs of a round, scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opmon.errors import InputError
from opmon.types.arrays import Array, Numbers
from opmon.types.prospect import Foreseen

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Columns(Mapping[str, Numbers]):
    """Auxiliary variables by name, each read when it is first asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Numbers]) -> None:
        self._names, self._read = tuple(names), read
        self._known: dict[str, Numbers] = {}

    def __getitem__(self, name: str) -> Numbers:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """Parts of the frame that draws are promised to."""

    part: NDArray[np.int16]
    """The part that each input lies in; 0: none that is promised anything."""
    least: tuple[int, ...]
    """How many draws each part gets at least, where it has as many inputs."""

    def __len__(self) -> int:
        return len(self.part)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The inputs of a round, scored: what a sampler draws from (the sampling frame).

    ``variables`` maps the name of an auxiliary variable to one value per input, larger = more suspicious; those of a
    monitor's frame are read from disk when they are asked for. ``predictions`` are for samplers that look at them.
    ``activations`` has one row per input and one column per neuron of a hidden layer. It is there only for samplers
    that need it, such as CES: numbers, or, in a monitor, uint8: in which of the sampler's ``activation_levels`` equal
    parts of its range over the frame each neuron lies.
    """

    variables: Mapping[str, Numbers]
    predictions: Array | None = None
    activations: Array | None = None
    size: int = field(default=-1)
    foreseen: Foreseen | None = None
    """What the main measure's linearised value is likely to be, for samplers that aim at it; None: nothing is known of
    it, or the measure is the usual one."""
    reserved: Reserved | None = None
    """The parts that draws are promised to, for samplers that keep such promises."""

    def __post_init__(self) -> None:
        lengths: dict[str, int] = {}
        if not isinstance(self.variables, Columns):
            numbers = {name: _numbers(name, values) for name, values in self.variables.items()}
            object.__setattr__(self, "variables", numbers)
            lengths = {f"variables[{name!r}]": len(values) for name, values in numbers.items()}
        for name in ("predictions", "activations", "foreseen", "reserved"):
            values = getattr(self, name)
            if values is not None:
                lengths[name] = len(values)
        if self.size >= 0:
            lengths["size"] = self.size
        if not lengths:
            raise InputError("a frame needs at least one variable, or its size: Frame({}, size=1000)")
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise InputError(f"everything in a frame has one entry per input; got {found}")
        object.__setattr__(self, "size", next(iter(lengths.values())))

    def variable(self, name: str) -> Numbers:
        """The auxiliary variable ``name``, or an error that names those there are."""
        try:
            return self.variables[name]
        except KeyError:
            have = ", ".join(sorted(self.variables)) or "none at all"
            raise InputError(f"the frame has no variable {name!r}; it has: {have}") from None


def _numbers(name: str, values: ArrayLike) -> Numbers:
    """A plain array of floats; float32 and float64 as they are, without a copy."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InputError(f"variable {name!r} has masked values; give every input a number")
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise InputError(f"variable {name!r} must be one number per input; got shape {numbers.shape}")
    if numbers.dtype.kind not in "fiub":
        raise InputError(
            f"variable {name!r} must hold real numbers; got {numbers.dtype}: convert it with astype(float)"
        )
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)
