"""Suites that a plugin of each kind must pass, and what tests of one's own plugins need.

One call is one test: ``check_sampler(Mine())`` raises AssertionError that says which promise of the contract in
:mod:`opmon.abc` is not kept. opmon's own plugins are tested by the same suites.
"""

from opmon.testing.actions import check_action
from opmon.testing.executors import check_executor
from opmon.testing.heads import check_head
from opmon.testing.judges import check_judge
from opmon.testing.label_providers import Annotators, check_label_provider
from opmon.testing.measures import check_measure
from opmon.testing.perturbations import check_perturbation
from opmon.testing.registries import check_registry
from opmon.testing.rules import check_rule
from opmon.testing.samplers import check_sampler
from opmon.testing.sources import check_source

__all__ = [
    "Annotators",
    "check_action",
    "check_executor",
    "check_head",
    "check_judge",
    "check_label_provider",
    "check_measure",
    "check_perturbation",
    "check_registry",
    "check_rule",
    "check_sampler",
    "check_source",
]
