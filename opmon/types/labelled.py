"""What is known of every draw: truth, prediction, scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.types.arrays import Array, Numbers, Positions


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """What is known of every draw: one entry per draw, in the order of the draw.

    What measures are computed from, where a :class:`~opmon.types.Sample` has only the loss. Values of a draw without
    an answer mean nothing: :meth:`only` leaves such draws out.
    """

    answered: NDArray[np.bool_]
    truth: Array
    """Classes as text; numbers for a regression and where annotators give a score; for several labels at once one row
    per draw that says of each class whether it is there."""
    predicted: Array
    """Of the same kind as ``truth``; NaN where annotators judge the output itself."""
    scores: Numbers | None = None
    """One row per draw and one column for each of ``classes``, NaN where they are not known; None where nobody told
    any."""
    classes: tuple[str, ...] = ()
    """The classes that there are, in the order of the columns of ``scores``."""

    def __post_init__(self) -> None:
        lengths = {"answered": len(self.answered), "truth": len(self.truth), "predicted": len(self.predicted)}
        if self.scores is not None:
            if self.scores.ndim != 2 or self.scores.shape[1] != len(self.classes):
                raise InputError(
                    f"scores have one row per draw and one column per class; got {self.scores.shape} for the classes "
                    f"{', '.join(self.classes) or 'none'}"
                )
            lengths["scores"] = len(self.scores)
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise InputError(f"everything known of the draws has one entry per draw; got {told}")

    def __len__(self) -> int:
        return len(self.answered)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """The draws whose scores are known."""
        if self.scores is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    def only(self, which: NDArray[np.bool_] | Positions) -> Labelled:
        """What is known of some of the draws, which a mask or their places name."""
        scores = None if self.scores is None else self.scores[which]
        return Labelled(self.answered[which], self.truth[which], self.predicted[which], scores, self.classes)
