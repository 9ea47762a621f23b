"""An estimated quantity with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from opmon.errors import InputError
from opmon.quantities import ACCURACY, Quantity


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated quantity of the whole frame with its two-sided interval.

    ``n`` counts draws (an input drawn twice counts twice) and ``response`` is the share of them that was answered.
    ``quantity`` says what it is of: the accuracy (1 − mean outcome) of a classifier, the mean squared error (the mean
    outcome) of a regression. ``method`` names design and interval.
    ``provisional`` is true while answers may still come. ``notes`` say in plain words what a reader must know,
    for instance why an interval is wide. ``standard_error`` is None where the design gives none.
    """

    value: float
    low: float
    high: float
    n: int
    frame_size: int
    response: float
    method: str
    level: float = 0.95
    quantity: Quantity = ACCURACY
    standard_error: float | None = None
    provisional: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise InputError(
                f"an interval holds its estimate; got {self.low} <= {self.value} <= {self.high} from {self.method}"
            )
        if not 0 < self.level < 1:
            raise InputError(f"level must lie strictly between 0 and 1; got {self.level}")

    @property
    def answers(self) -> float:
        """How many of its draws were answered."""
        return self.n * self.response

    @property
    def counted(self) -> bool:
        """Whether it is no estimate: every input of the frame has an answer."""
        return self.n == self.frame_size and self.response == 1 and self.low == self.value == self.high

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2
