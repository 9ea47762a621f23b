"""The frozen values that pass between stages, one word per thing.

::

    Slice ─► Batch ─► Frame ─► Draw ─► Task ─► Label ─► Sample ─► Estimate ─► Verdict
    what     rows     scored   chosen  asked   answered  draw with   value and   what a rule
    to read           inputs                             outcomes    interval    concluded

A value is validated when it is made, so whoever receives one need not check it again. Arrays inside are not copied:
treat them as read-only.
"""

from __future__ import annotations

from opmon.problems import Problem
from opmon.types.arrays import Array, Floats, Numbers, Positions
from opmon.types.documents import Document, Json
from opmon.types.draw import Draw, Sample
from opmon.types.estimate import Estimate
from opmon.types.frame import Columns, Frame
from opmon.types.guide import Guide
from opmon.types.label import Label, Task
from opmon.types.labelled import Labelled
from opmon.types.log import Batch, Slice
from opmon.types.model import ModelVersion, Signature
from opmon.types.verdict import Verdict, VerdictState

__all__ = [
    "Array",
    "Batch",
    "Columns",
    "Document",
    "Draw",
    "Estimate",
    "Floats",
    "Frame",
    "Guide",
    "Json",
    "Label",
    "Labelled",
    "ModelVersion",
    "Numbers",
    "Positions",
    "Problem",
    "Sample",
    "Signature",
    "Slice",
    "Task",
    "Verdict",
    "VerdictState",
]
