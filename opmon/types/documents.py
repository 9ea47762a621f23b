"""Names for what JSON holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Anything that JSON can hold."""
Document: TypeAlias = Mapping[str, Any]
"""A JSON object whose keys its reader knows: settings, evidence that was kept, an answer over HTTP."""
