"""A source around another one: what it does not say itself, the other says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opmon.abc import Source
from opmon.sources._passing import Passing
from opmon.types import Slice


@dataclass(frozen=True)
class Around(Passing):
    """Passes every hook on to ``source``."""

    source: Source

    @property
    def reader(self) -> Source:
        return self.source

    @property
    def answers(self) -> tuple[str, ...]:
        return self.source.answers

    @property
    def inclusion(self) -> str | None:
        return self.source.inclusion

    @property
    def asks(self) -> str | None:
        return self.source.asks

    @property
    def patience(self) -> float:
        return self.source.patience

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        return self.source.lost(slices)

    def for_cycle(self) -> Source:
        return replace(self, source=self.source.for_cycle())
