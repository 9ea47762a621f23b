"""What a registry is told of a run at once, and what it says of a model version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

RunStatus = Literal["FINISHED", "FAILED", "KILLED"]
"""How a run ends."""


@dataclass(frozen=True, slots=True)
class Point:
    """A number of a run at a step, and the moment it belongs to."""

    key: str
    value: float | None
    step: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Dataset:
    """A Parquet file kept with a run, told to the registry as a dataset that the run is about."""

    name: str
    role: str
    """What the run has it for: ``production``, ``failures``."""
    path: Path
    """The file on this machine."""
    kept_as: str
    """Where it is among the files of the run."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VersionNotes:
    """What people and programs have written on a model version."""

    tags: Mapping[str, str]
    description: str = ""


@dataclass(frozen=True, slots=True)
class TaggedRun:
    """A run that was found by its tags."""

    run_id: str
    tags: Mapping[str, str]
    started_at: datetime
