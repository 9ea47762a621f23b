"""Accuracy before labels come: what a round is expected to be, from its scores and the labels of rounds before.

It is a prediction and no estimate: nothing of the round itself is labelled. Pure, like all of the statistical core.
"""

from opmon.expected.design import Seen
from opmon.expected.expectation import Expectation, Past, expect, from_scores
from opmon.expected.record import Record
from opmon.expected.widening import Miss

__all__ = ["Expectation", "Miss", "Past", "Record", "Seen", "expect", "from_scores"]
