"""Two versions of a model by a measure: what it is of both, by how much it differs, and what that decides."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.decisions._words import tell_apart, were_known
from opmon.decisions.comparison import Winner
from opmon.quantities import Quantity
from opmon.wording import counted, exactly, percent, points_between, signed


@dataclass(frozen=True)
class SliceDifference:
    """By how much the second version's measure is higher in a slice, and whether it differs there at all, with one
    error over all slices."""

    name: str
    difference: float
    low: float
    high: float
    labels: int
    differs: bool


@dataclass(frozen=True)
class MeasureComparison:
    """By how much a measure is higher of the second version."""

    quantity: Quantity
    first: float
    second: float
    difference: float
    """Of a measure that is best at 0: by how much the second is farther from it."""
    low: float
    high: float
    labels: int
    differing: int | None
    """The draws that tell the two apart; None where each version has its own."""
    rounds: int
    alpha: float
    known_before: int = 0
    """Rounds among these that were opened before both versions were registered."""
    slices: tuple[SliceDifference, ...] = ()

    @property
    def winner(self) -> Winner | None:
        """The better version; None where chance alone may be the explanation, or no way is better."""
        if self.low <= 0 <= self.high or self.quantity.better == "neither":
            return None
        return "second" if (self.difference > 0) is (self.quantity.better == "higher") else "first"

    def words(self, first: str, second: str) -> str:
        """The comparison for a reader, the versions by name."""
        quantity = self.quantity
        one, two = (quantity.text(value) for value in (self.first, self.second))
        what = f"The {quantity.name} of {second} is {two}, of {first} {one}"
        far = " in its distance from 0" if quantity.better == "zero" else ""
        level = exactly(1 - self.alpha, in_percent=True)
        span = f"a difference of {self._signed(self.difference)}{far} ({level} interval {self._between(self)})"
        text = f"{what}: {span}, from {counted(self.labels, 'labelled draw')} in {counted(self.rounds, 'round')}"
        if self.differing is None:
            text += "; each version answered other inputs, and those of one may have been easier"
        else:
            text += f"; {tell_apart(self.differing)}"
        if self.known_before:
            text += f". {were_known(self.known_before)}"
        if self.winner is not None:
            better = first if self.winner == "first" else second
            text += f". {better} is better; that holds for one look, not for one after each round"
        elif quantity.better != "neither":
            text += ". Not decided: it may be nothing"
        return f"{text}.{self._of_slices(second)}"

    def _of_slices(self, second: str) -> str:
        if not self.slices:
            return ""
        told = [each for each in self.slices if each.differs]
        if not told:
            if len(self.slices) == 1:
                return f" In its slice {self.slices[0].name} no difference is shown."
            return f" In none of {len(self.slices)} slices is a difference shown."
        named = "; ".join(f"{each.name} {self._signed(each.difference)} ({self._between(each)})" for each in told)
        return (
            f" Of {counted(len(self.slices), 'slice')} it differs in these, wrong of any with probability "
            f"{percent(self.alpha, 0)} at most: {named}."
        )

    def _signed(self, value: float) -> str:
        return signed(value, self.quantity.difference(value))

    def _between(self, of: MeasureComparison | SliceDifference) -> str:
        if self.quantity.percent:
            return points_between(of.low, of.high)
        return f"{self._signed(of.low)} to {self._signed(of.high)}"
