"""What stands beside the axes of figures: all ticks of an axis with as many digits as tell them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opmon.quantities import Quantity
from opmon.wording import beside_axis

if TYPE_CHECKING:
    from matplotlib.ticker import Formatter


def beside(quantity: Quantity) -> Formatter:
    """How an axis of a quantity is written; a share has nothing beside what cannot be."""
    from matplotlib.ticker import Formatter as Base

    class Beside(Base):
        def __call__(self, value: float, position: int | None = None) -> str:
            return self.format_ticks([value])[0]

        def format_ticks(self, values: list[float]) -> list[str]:
            possible = [value for value in values if not quantity.share or -1e-9 <= value <= 1 + 1e-9]
            texts = dict(zip(possible, beside_axis(possible, in_percent=quantity.percent), strict=True))
            return [texts.get(value, "") for value in values]

    return Beside()
