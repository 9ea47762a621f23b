"""What a program printed last, for the error that says how it ended: it may print the secrets that it was given."""

from __future__ import annotations

import os
from typing import IO

from opmon.redaction import redacted

_READ, _TOLD = 16_000, 500
"""So many bytes are read of the end, and so many characters told: a secret is hidden before a cut could halve it."""


def last_words(printed: IO[bytes]) -> str:
    """The end of what was printed, in one line and without secrets."""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _READ))
    return redacted(" ".join(printed.read().decode(errors="replace").split()))[-_TOLD:]
