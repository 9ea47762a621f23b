"""The job of scoring a part of a round, with all that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from opmon.jobs.model import Answering, Way
from opmon.jobs.thinning import Thinning
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Problem, Slice
from opmon.types.slicing import Cut
from opmon.where import Where

if TYPE_CHECKING:
    from opmon.abc import Head, Measure, Source

PART_ROWS = 1 << 18
"""A part has about so many rows of the log: what a job holds in memory at a time, and what a kill can cost."""


@dataclass(frozen=True)
class LogColumns:
    """The columns of the log that a job keeps beside the model's answers."""

    id: str | None = None
    timestamp: str | None = None
    prediction: str | None = None
    threshold: float | None = None
    """The number in ``prediction`` from which on it means the second of two classes."""


@dataclass(frozen=True)
class OnlyVersion:
    """The rows to score where the log names model versions: those that ``version`` answered.

    ``meant`` maps what ``column`` says to the version that it means.
    """

    column: str
    version: str
    meant: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ScoreJob:
    """Score some slices of a round, and write what was found into parts below ``folder``."""

    source: Source
    slices: tuple[Slice, ...]
    """The slices of the round, which together decide on columns and types."""
    numbers: tuple[int, ...]
    """The numbers of the slices that this job scores."""
    way: Way[Answering]
    """The way in which a batch gets its scores."""
    problem: Problem
    columns: LogColumns
    folder: Path
    monitor: str
    """The monitor's name in errors."""
    spellings: Spellings = AS_SPELT
    """The log's spellings of the classes."""
    version: OnlyVersion | None = None
    thinning: Thinning | None = None
    """How rows that were logged with different probabilities are made even; None where all were logged alike."""
    in_time: datetime | None = None
    """What was answered before came late."""
    where: Where | None = None
    """Which rows are inputs at all; None: all of them."""
    variables: Mapping[str, Head] = field(default_factory=dict)
    """The variables that come from columns of the log, by name."""
    cuts: tuple[Cut, ...] = ()
    """How columns of the log divide the inputs into slices."""
    aim: Measure | None = None
    """The measure that the sampler aims at: the chances that it wants are kept of every input; None: it aims at none
    of classes."""
    neurons: int | None = None
    """The most neurons of the layer to keep of each input; None where its activations are not wanted."""
    sampled: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The rows of the job of which the columns in words and numbers are kept as they are, for the drift report."""
    not_sampled: frozenset[str] = frozenset()
    """The columns to leave out of that."""
    part_rows: int = PART_ROWS
