"""A model and a log at hand, and settings tried on both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from opmon.abc import Registry
from opmon.config import MonitorSettings, Settings
from opmon.errors import ModelError
from opmon.jobs.model import Answering
from opmon.scoring.scored import Scored
from opmon.setup.choice import Choice, nested
from opmon.setup.log import Log
from opmon.setup.source import Keys
from opmon.stages.models import way_of
from opmon.types import Array, Batch, ModelVersion, Signature

ROWS = 1000
"""So many inputs are answered to hold them against what the log says."""


@dataclass(frozen=True)
class Answers:
    """The answers to the first rows of the log; ``rows`` are those that could be scored."""

    scorer: Answering
    rows: NDArray[np.int64]
    predictions: Array
    classes: tuple[str, ...] | None


@dataclass(frozen=True)
class World:
    """The registered model, the log, and where files may be kept meanwhile."""

    registry: Registry
    model: ModelVersion
    signature: Signature | None
    log: Log
    source: Keys
    place: str
    """The log's path or URL, as far as it has one."""
    folder: Path
    trust: bool
    uri: str

    def settings(self, choices: Iterable[Choice]) -> MonitorSettings:
        """A monitor with these keys."""
        source = [Choice(("source", key), value) for key, value in self.source.items()]
        given = {"model": self.uri, **nested([*source, *self.log.source, *choices])}
        whole = {"database": f"sqlite:///{self.folder / 'none.db'}", "monitors": {"model": given}}
        return Settings.from_mapping(whole, self.folder).monitor("model")

    @property
    def batch(self) -> Batch:
        """The first rows of the log."""
        rows = self.log.rows.slice(0, ROWS).combine_chunks().to_batches()
        return Batch(0, 0, rows[0] if rows else pa.RecordBatch.from_pylist([]))

    def answers(self, choices: Sequence[Choice]) -> Answers:
        """The answers with these keys; an error if most rows have none."""
        scorer = way_of(self.settings(choices), self.registry, self.model, self.folder).open()
        return answers_of(scorer, list(scorer.score([self.batch])), self.batch.rows.num_rows)


def answers_of(scorer: Answering, scored: Sequence[Scored], count: int) -> Answers:
    """The answers of one batch; an error where most of its rows have none."""
    (found,) = scored
    refused = count - len(found.rows)
    reason = next(iter(found.rejected.values()), "")
    if 2 * refused > count:
        raise ModelError(f"{refused} of {count} inputs cannot be scored: {reason}")
    return Answers(scorer, found.rows, found.predictions, found.classes)
