"""Names for arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Values of one dtype that the data decide: numbers, text, truth values, objects."""
Numbers: TypeAlias = NDArray[np.floating]
"""Numbers in single or double precision."""
Floats: TypeAlias = NDArray[np.float64]
"""Numbers in double precision, as statistics are computed."""
Positions: TypeAlias = NDArray[np.int64]
"""Places in a frame."""
