"""The labels of a simple random sample whose interval is as narrow as that of draws that aim, from what these tell."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from opmon.estimators.ratio_tallies import Parts, plain_half_width
from opmon.estimators.tally import Tally


def plain_labels(tally: Tally, half_width: float, size: int, level: float) -> int | None:
    """So many of ``size`` inputs; None where the tally does not tell how much the losses of all inputs differ.

    Of a mean loss ``n = z² σ² / h²`` with ``σ² = Σ A_c (v_c + (m_c − m)²)`` over the parts ``c`` of the frame, of
    shares ``A_c``, means ``m_c`` and variances ``v_c``; of a ratio ``σ² = Σ (n − R d)² / D²``; both with
    the finite-population correction ``1/(1/n + 1/N)``. It goes by the normal distribution, which takes too few labels
    for few of a class.
    """
    if not 0 < half_width < math.inf:
        return None
    if tally.is_ratio:
        unit = plain_half_width(Parts.of([tally], [1.0]), level)
    else:
        unit = float(ndtri(0.5 + level / 2)) * (spread_told(tally) or 0.0)
    if not 0 < unit < math.inf:
        return None
    wanted = unit**2 / half_width**2
    return min(max(math.ceil(wanted / (1 + wanted / size)), 1), size)


def spread_told(tally: Tally) -> float | None:
    """The standard deviation ``σ`` of the losses of all inputs; None where the tally does not tell it."""
    total = float(tally.share.sum())
    if tally.known or not tally.varies or total <= 0:
        return None
    share = tally.share / total
    mean = float(share @ tally.mean)
    square = float(share @ (tally.variance + (tally.mean - mean) ** 2))
    return math.sqrt(max(square, 0.0)) if np.isfinite(square) else None
