"""The estimator of a sample's design."""

from __future__ import annotations

from opmon import plugins
from opmon.abc import Estimator
from opmon.types import Sample


def design_of(sample: Sample) -> Estimator:
    """The estimator that the draw of ``sample`` names, with its defaults."""
    estimator: Estimator = plugins.make("estimator", sample.draw.design)
    return estimator
