"""The Hansen–Hurwitz estimator: draws with replacement and known, unequal probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opmon.estimators.core import accuracy, answered, column, constant, is_binary, require_design
from opmon.estimators.means_core import skewed_mean, skewness_of
from opmon.estimators.weighted_core import poststratified_share, response_weights, weighted_mean_error
from opmon.types import Estimate, Sample


@dataclass(frozen=True)
class HansenHurwitz:
    """Accuracy ``1 − (1/n) Σ y_k / (N p_k)`` from draws with probabilities ``p_k``; unbiased.

    The variance is that of ``n`` independent terms, divided by ``n`` (Hansen and Hurwitz, Ann. Math. Stat. 14, 1943;
    DeepSample, equations 3 and 4). The usual t interval covers 57 to 87 % instead of 95 % where the variable is the
    confidence: it does not know of the failures not yet seen in the large, lightly sampled bulk. The interval here
    post-stratifies on the draw probability instead; it is wide while few draws fall into the bulk, and rightly so.

    Fails when ``p`` is tiny where failures are (λ = 0 and an overconfident model): unbiased still, but a rare failure
    in the bulk moves the estimate far. Draws without an answer are represented by those of similar probability.
    """

    def estimate(self, sample: Sample, level: float = 0.95) -> Estimate:
        require_design(sample, "sups")
        answers = answered(sample)
        stratum = column(sample.draw, "stratum")
        weight = 1 / (sample.draw.frame_size * column(sample.draw, "probability"))
        stands_for = response_weights(answers, stratum)[answers]
        y, terms_weight = sample.outcomes[answers], weight[answers]
        terms = y * terms_weight * stands_for * len(y) / len(answers)
        loss, error = float(terms.mean()), weighted_mean_error(terms)
        if is_binary(y):
            sizes = np.asarray(constant(sample.draw, "stratum_size"))
            low, high = poststratified_share(y, terms_weight, stratum[answers], sizes, level)
            method = "sups/post-stratified"
        elif error is not None:
            low, high = skewed_mean(loss, error, skewness_of(terms), len(y), level)
            method = "sups/hall"
        else:
            low, high, method = 0.0, np.inf, "sups/unbounded"
        return accuracy(sample, loss, low, high, method=method, level=level, standard_error=error)
