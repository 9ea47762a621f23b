"""A draw as bytes, for the database and for MLflow: an ``.npz`` of plain arrays, no pickles."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from opmon.types import Array, Draw


def pack_draw(draw: Draw) -> bytes:
    """A draw as bytes: an ``.npz`` of plain arrays, no pickles."""
    arrays: dict[str, Any] = {"design": np.array(draw.design), "frame_size": np.array(draw.frame_size)}
    arrays["positions"] = draw.positions
    arrays |= {f"column.{name}": np.asarray(values) for name, values in draw.columns.items()}
    arrays |= {f"constant.{name}": np.asarray(values) for name, values in draw.constants.items()}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def unpack_draw(data: bytes) -> Draw:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        named: dict[str, dict[str, Array]] = {"column": {}, "constant": {}}
        for key in arrays.files:
            prefix, _, name = key.partition(".")
            if name:
                named[prefix][name] = arrays[key]
        return Draw(
            design=str(arrays["design"]),
            frame_size=int(arrays["frame_size"]),
            positions=arrays["positions"],
            columns=named["column"],
            constants=named["constant"],
        )
