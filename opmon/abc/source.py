"""The contract of sources, which read the inputs of production."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opmon.abc.plugin import Plugin
from opmon.types import Batch, Slice

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Flaw:
    """A part of the log that cannot be read however often it is tried."""

    part: str
    why: str
    passing: str
    """The position that leaves the part alone until it changes."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """Where an input was found, and where it could not be removed."""

    found: Sequence[str] = ()
    unreached: Sequence[str] = ()
    positions: Mapping[str, str] = field(default_factory=dict)
    """Where the monitor now stands in the parts that were written again."""


class Source(Plugin, ABC):
    """Reads what production logged. It keeps no state: positions come in, slices go out.

    It goes with the jobs of a round to wherever they run, and must be picklable.
    """

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns with what production answered, as far as the source knows: annotators are not shown them."""
        return ()

    @property
    def inclusion(self) -> str | None:
        """The column that says with which probability each row was logged; None where production logs all."""
        return None

    @property
    def asks(self) -> str | None:
        """Where it reads from, in words and without secrets: where that does not answer, all sources that name the same
        leave it alone for a while. None: nobody else reads from there."""
        return None

    @property
    def patience(self) -> float:
        """For how many seconds an answer, or the next batch, is waited for. What comes later counts no less: nothing
        more is asked until it came, and then more time is given."""
        return 300.0

    @property
    def receives(self) -> Path | None:
        """The folder in which opmon's own endpoint keeps what is sent for this source; None where nothing is sent."""
        return None

    def within(self, folder: Path) -> Source:
        """The source as one monitor has it, whose own files may lie in ``folder``, below the configuration's state."""
        return self

    def constants(self, piece: Slice) -> Mapping[str, str | int | None]:
        """Columns with one value in all rows of a slice, as far as the name of its part tells: such as its folders.

        A column that the rows themselves have is none of them.
        """
        return {}

    def erase(self, input_id: str, positions: Mapping[str, str], needed: Collection[str], *, really: bool) -> Erasure:
        """Remove what an input holds from files that opmon itself wrote; its row and its id stay.

        ``positions`` is where the monitor stands in each part, ``needed`` the parts that open rounds may still read:
        those are left for later. Without ``really`` it is only said where the input is. May be called again.
        """
        return Erasure(unreached=("production's own log: what is removed there is not read again",))

    def lost(self, slices: Sequence[Slice]) -> Mapping[str, int]:
        """Inputs that production had, and that were not logged or are not read: why, and how many, by these slices."""
        return {}

    def flaws(self, positions: Mapping[str, str], limit: int | None = None) -> Sequence[Flaw]:
        """Parts to set aside because they cannot be read; none where such parts stop the source, or are passed over.

        They are listed with their reasons, and left alone until they change or somebody gives them back. ``limit``: it
        is enough to look as far as :meth:`pending` does with it.
        """
        return ()

    def begins(self) -> Mapping[str, str]:
        """The positions (part -> position) where a monitor that has read nothing starts; nothing before is an input.

        It is asked until it says something, and that is kept; a part that it does not name is read from its beginning.
        """
        return {}

    @abstractmethod
    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """The slices that can be read now and start where ``positions`` (part -> last stop) end; oldest first.

        About ``limit`` rows at the most, where it is given.
        """

    def for_cycle(self) -> Source:
        """What one cycle asks for :meth:`pending` and :meth:`flaws`, round after round: it may remember what it has
        listed, so that what comes meanwhile waits for the next cycle. It never leaves the process."""
        return self

    @abstractmethod
    def read(self, slices: Sequence[Slice], columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """The rows of the slices in order, the same ones every time it is asked.

        Rows that cannot be read, where that does not stop the source, keep their numbers: their slice has fewer rows,
        and one of its batches says in ``unreadable`` why, and how many.
        """

    def read_some(self, slices: Sequence[Slice], numbers: Sequence[int]) -> Iterator[Batch]:
        """The rows of the slices with these numbers alone, in order, and otherwise just as :meth:`read` gives them:
        with the columns and types that all ``slices`` have together. A job reads its share of a round by it."""
        wanted = frozenset(numbers)
        return (batch for batch in self.read(slices) if batch.slice_index in wanted)

    @abstractmethod
    def fetch(self, slices: Sequence[Slice], rows: Mapping[int, Sequence[int]]) -> pa.Table:
        """Single rows again: for each slice number the row numbers wanted; ordered by slice, then as asked."""
