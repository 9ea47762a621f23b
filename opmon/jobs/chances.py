"""The chances of classes that a sampler aims by, out of the model's scores."""

from __future__ import annotations

import dataclasses

import numpy as np

from opmon.abc import Measure
from opmon.scoring.scored import Scored


def with_chances(scored: Scored, aim: Measure) -> Scored:
    """The scored batch with the chance of each class that the measure wants, and without the other scores, which would
    take as many numbers for each input as there are classes; no chance where it is not known which score is whose."""
    classes, scores = scored.classes or (), scored.scores
    if scores is None or scores.shape[1] != len(classes):
        return dataclasses.replace(scored, scores=None)
    wanted = [name for name in aim.chances(classes) if name in classes]
    chances = {name: scores[:, classes.index(name)].astype(np.float32) for name in wanted}
    return dataclasses.replace(scored, scores=None, chances=chances)
