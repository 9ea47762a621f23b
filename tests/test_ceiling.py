"""Memory that was refused is told in words, and is no fault of opmon."""

from __future__ import annotations

import errno

import pytest

from opmon.ceiling import shortage
from opmon.errors import UnavailableError
from opmon.registry.translation import translated

REFUSED = (MemoryError(), RuntimeError("can't start new thread"), OSError(errno.ENOMEM, "Cannot allocate memory"))


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: type(refused).__name__)
def test_what_was_refused_is_told_wherever_a_library_wraps_it(refused: Exception) -> None:
    wrapped = ValueError("it failed")
    wrapped.__cause__ = refused
    assert "give opmon more memory" in str(shortage(wrapped))
    with pytest.raises(UnavailableError, match="there was no memory left"), translated("asking", "http://mlflow"):
        raise wrapped


def test_other_errors_are_none_of_it() -> None:
    assert shortage(RuntimeError("no")) is None
    assert shortage(OSError(errno.ENOENT, "no")) is None
