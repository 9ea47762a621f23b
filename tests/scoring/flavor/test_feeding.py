"""Rows become the tensors that a model's signature names; those that cannot are left out with the reason."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from opmon.errors import ModelError
from opmon.scoring.flavor.feeding import SHAPE, pieces
from opmon.scoring.inputs.images import ImageInput
from opmon.types import Signature


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((4, 4), shade, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def test_pictures_are_lists_of_numbers_in_the_shape_of_the_signature() -> None:
    cells = [picture(shade) for shade in range(0, 250, 25)] * 110
    cells[3], cells[1050] = b"no picture", picture(77)[:40]
    signature = Signature(tensors=((None, "float32", (-1, 1, 4, 4)),))
    rows = pa.RecordBatch.from_pydict({"id": list(range(1100)), "photo": cells})
    found = list(pieces(ImageInput("photo"), signature, rows))
    assert [len(piece.places) for piece in found] == [1023, 75]
    assert [list(piece.rejected) for piece in found] == [[3], [1050]]
    assert np.concatenate([piece.places for piece in found]).tolist() == [n for n in range(1100) if n not in (3, 1050)]
    (field,) = found[0].rows.schema
    assert field.metadata == {SHAPE: b"1,4,4"}
    assert found[1].rows.column(0)[-1].as_py() == pytest.approx([225 / 255] * 16)


def test_a_model_that_does_not_say_what_it_takes_is_told_how_to() -> None:
    rows = pa.RecordBatch.from_pydict({"photo": [picture(1)]})
    for signature in (None, Signature(columns=(("photo", "binary"),))):
        with pytest.raises(ModelError, match="log it with a signature of arrays"):
            list(pieces(ImageInput("photo"), signature, rows))
