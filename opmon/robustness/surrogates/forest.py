"""The paper's surrogate: a random forest over severities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opmon.robustness.space import Tests
from opmon.types import Floats


def forest(tests: Tests, share: Floats, wanted: Tests, *, trees: int = 100, seed: int = 0) -> Floats:
    """TestifAI's forest (100 trees, no bootstrap, all features, log-loss), fitted on ``tests`` with their shares.

    The paper fits it on one row per test and input; those rows repeat |tests| different ones. Each configuration is
    given once as right, with weight r_σ, and once as wrong, with weight 1 − r_σ: the same trees in milliseconds.

    Beyond order 2 it repeats what it saw at a neighbouring pair: that is what the default surrogate improves on.

    Reference: TestifAI, section 4.3.
    """
    from sklearn.ensemble import RandomForestClassifier

    rows = _features(tests)
    weights = np.concatenate([share, 1 - share])
    labels = np.repeat([1, 0], len(rows))
    used = weights > 0
    if len(np.unique(labels[used])) == 1:
        return np.full(len(wanted), float(labels[used][0]))
    grown = RandomForestClassifier(
        n_estimators=trees, bootstrap=False, max_features=None, criterion="log_loss", random_state=seed
    )
    grown.fit(np.concatenate([rows, rows])[used], labels[used], sample_weight=weights[used])
    return np.asarray(grown.predict_proba(_features(wanted))[:, 1], np.float64)


def _features(tests: Tests) -> NDArray[np.int8]:
    """Severities, and in an ordered space the place of each perturbation."""
    k = tests.severities.shape[1]
    ascending = np.cumsum(tests.severities > 0, axis=1) * (tests.severities > 0)
    if np.array_equal(ascending, tests.ranks):
        return tests.severities
    return np.concatenate([tests.severities, tests.ranks], axis=1).reshape(-1, 2 * k)
