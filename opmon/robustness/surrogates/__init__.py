"""What predicts the tests that were not run: one surrogate per file."""

from __future__ import annotations
