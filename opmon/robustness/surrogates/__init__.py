"""Surrogates, which predict the tests that were not run: one per file."""

from __future__ import annotations
