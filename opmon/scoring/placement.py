"""The placement of a model's operators: where ONNX Runtime really runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opmon.scoring.devices import CPU, short_name

_SHOWN = 5


@dataclass(frozen=True)
class Placement:
    """The operators of each provider that was loaded, by kind and how many of it, in order of preference."""

    providers: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, loaded: Sequence[str], operators: Iterable[tuple[str, str]]) -> Placement:
        """The placement by the providers that were loaded and the (provider, kind) of each operator."""
        kinds: dict[str, Counter[str]] = {name: Counter() for name in loaded}
        for provider, kind in operators:
            kinds.setdefault(provider, Counter())[kind] += 1
        return cls(kinds)

    @property
    def total(self) -> int:
        return sum(self._count(name) for name in self.providers)

    @property
    def beside_cpu(self) -> int:
        """The number of operators that run elsewhere than on the CPU."""
        return self.total - self._count(CPU)

    @property
    def device(self) -> str:
        """The device that most operators run on; the first of those with as many."""
        return short_name(max(self.providers, key=self._count)) if self.total else short_name(CPU)

    @property
    def on_cpu(self) -> str:
        """The kinds of operators that the CPU has, most frequent first."""
        kinds = [kind for kind, _ in Counter(self.providers.get(CPU, {})).most_common()]
        return ", ".join(kinds[:_SHOWN]) + (", …" if len(kinds) > _SHOWN else "")

    def __str__(self) -> str:
        """
        >>> print(Placement.of(["CUDAExecutionProvider", CPU], [("CUDAExecutionProvider", "Conv"), (CPU, "Cast")]))
        1 of 2 operators on cuda, 1 on cpu (Cast)
        """
        counts = [(name, self._count(name)) for name in self.providers]
        parts = [f"{count} on {short_name(name)}" for name, count in counts if count]
        if not parts:
            return "no operators"
        noun = "operator" if self.total == 1 else "operators"
        first = parts[0].replace(" on ", f" of {self.total} {noun} on ", 1)
        cpu = f" ({self.on_cpu})" if self.beside_cpu and self._count(CPU) else ""
        return ", ".join([first, *parts[1:]]) + cpu

    def _count(self, provider: str) -> int:
        return sum(self.providers.get(provider, {}).values())
