"""The contracts of opmon: what can be plugged in, every hook with its default.

A plugin subclasses one of these classes, implements what is abstract and overrides what differs::

    from dataclasses import dataclass
    from opmon.abc import Sampler

    @dataclass(frozen=True)
    class EveryTenth(Sampler):
        start: int = 0

        def draw(self, frame, budget, rng): ...

It is named in the entry-point group that :data:`opmon.plugins.GROUPS` gives for its kind, made with the keyword
arguments of the configuration, and checked against its contract when it is loaded. Nobody asks afterwards what it is or
has: every hook may be called on every plugin of its kind. A frozen dataclass is the usual form, so that a wrong name or
value is an error when the configuration is read.

Contracts lie below everything that implements them: they know values, arrays and nothing else of opmon.
"""

from __future__ import annotations

from opmon.abc._expecting import influence_of
from opmon.abc.action import Action
from opmon.abc.estimator import Estimator
from opmon.abc.executor import Executor, J, R
from opmon.abc.head import ArrayFunction, Head, Training
from opmon.abc.judge import Judge, Opinion, Question
from opmon.abc.label_provider import LabelProvider, Pulled, Said
from opmon.abc.measure import Gap, Measure, Quantile, Ratio, truth_numbers
from opmon.abc.perturbation import Perturbation
from opmon.abc.plugin import Plugin
from opmon.abc.recorded import Dataset, Point, RunStatus, TaggedRun, VersionNotes
from opmon.abc.registry import Ability, Converter, ModelFile, Network, Registry, Runnable
from opmon.abc.rule import USUAL, Rule
from opmon.abc.sampler import Sampler
from opmon.abc.source import Erasure, Flaw, Source

__all__ = [
    "USUAL",
    "Ability",
    "Action",
    "ArrayFunction",
    "Converter",
    "Dataset",
    "Erasure",
    "Estimator",
    "Executor",
    "Gap",
    "Head",
    "J",
    "Judge",
    "LabelProvider",
    "Measure",
    "ModelFile",
    "Network",
    "Opinion",
    "Perturbation",
    "Plugin",
    "Point",
    "Pulled",
    "Quantile",
    "Question",
    "R",
    "Ratio",
    "Registry",
    "Rule",
    "RunStatus",
    "Runnable",
    "Said",
    "Sampler",
    "Flaw",
    "Source",
    "TaggedRun",
    "Training",
    "VersionNotes",
    "influence_of",
    "truth_numbers",
]
