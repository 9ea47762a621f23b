"""Feeding: the way from rows of a batch to the model's tensors, planned once for each schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from opmon.scoring.inputs.columns import AS_NAN, Missing
from opmon.scoring.inputs.readers import Reader
from opmon.scoring.inputs.tensors import plan_inputs
from opmon.scoring.session import Tensor

_LESS = ("float", "float16")


@dataclass(frozen=True, eq=False)
class Feeding:
    """The columns of the inputs ``takes``: ``features`` or ``tensor`` where named, else ``signature``, else guessed."""

    takes: tuple[Tensor, ...]
    features: tuple[str, ...] | None = None
    tensor: str | None = None
    missing: Missing = AS_NAN
    reader: Reader | None = None
    """The reader that makes tensors of rows which are not plain numbers."""
    signature: tuple[str, ...] = ()
    missing_text: str | None = None
    """The word that the model takes for a missing text, where it knows one; see :class:`Missing`."""
    _plans: dict[pa.Schema, Reader] = field(default_factory=dict, repr=False)

    def plan(self, batch: pa.RecordBatch) -> Reader:
        """The plan for batches such as this one."""
        if self.reader is not None:
            return self.reader
        plan = self._plans.get(batch.schema)
        if plan is None:
            features = self.features
            if features is None and self.tensor is None and _fits(self.signature, self.takes, batch):
                features = self.signature
            missing = self.missing.of(self.missing_text)
            plan = plan_inputs(self.takes, batch, features, self.tensor, missing)
            self._plans[batch.schema] = plan
        return plan

    def exact(self) -> Feeding:
        """Read the columns as they are, which shows what is lost on the way to the model.

        Numbers are in float64, and where the model has a word for missing texts, these are None.
        """
        takes = tuple(replace(item, kind="double") if item.kind in _LESS else item for item in self.takes)
        missing = self.missing.of(self.missing_text)
        if missing != self.missing:
            missing = replace(missing, text=None, own=False)
        return replace(self, takes=takes, missing=missing, _plans={})


def _fits(names: tuple[str, ...], inputs: Sequence[Tensor], batch: pa.RecordBatch) -> bool:
    """Whether the signature's columns are there, and are as many numbers as the model's only input takes."""
    if len(names) < 2 or len(inputs) != 1 or len(inputs[0].shape) != 2 or not set(names) <= set(batch.schema.names):
        return False
    return inputs[0].shape[1] in (None, len(names))
