"""Proxies that rounds before teach, and proxies of two phases; a draw keeps what assists it."""

from __future__ import annotations

import numpy as np
import pytest

from opmon.errors import InputError
from opmon.estimators import SimpleRandomEstimator, assisted
from opmon.estimators.learned import ENOUGH, learned
from opmon.estimators.proxies import Proxy
from opmon.samplers.srs import SimpleRandom
from opmon.store.draws import pack_draw, unpack_draw
from opmon.testing.populations import classifier, regressor

OLD = classifier(size=2000, accuracy=0.8, informative=2.0, seed=1)
NEW = classifier(size=3000, accuracy=0.8, informative=2.0, seed=2)


def test_what_old_labels_teach_tells_where_the_model_is_wrong() -> None:
    chosen = np.random.default_rng(0).permutation(2000)[:400]
    variables = {name: np.asarray(values)[chosen] for name, values in OLD.frame.variables.items()}
    guesses = learned(variables, OLD.outcomes[chosen], NEW.frame.variables, binary=True)
    assert guesses is not None
    assert ((guesses >= 0) & (guesses <= 1)).all()
    assert np.corrcoef(guesses, NEW.outcomes)[0, 1] > 0.4


def test_losses_are_learned_too() -> None:
    old, new = regressor(2000, seed=1), regressor(2000, seed=2)
    guesses = learned(dict(old.frame.variables), old.outcomes, new.frame.variables, binary=False)
    assert guesses is not None
    assert (guesses >= 0).all()
    assert np.corrcoef(guesses, new.outcomes)[0, 1] > 0.2


@pytest.mark.parametrize(
    ("labels", "failures", "names"), [(ENOUGH - 1, 20, "confidence"), (100, 4, "confidence"), (100, 20, "elsewhere")]
)
def test_nothing_is_learned_from_too_little(labels: int, failures: int, names: str) -> None:
    outcomes = np.zeros(labels)
    outcomes[:failures] = 1.0
    assert learned({names: np.random.default_rng(0).random(labels)}, outcomes, NEW.frame.variables, binary=True) is None


def test_a_variable_that_was_not_always_there_teaches_nothing() -> None:
    outcomes = (np.arange(100) < 20) * 1.0
    assert learned({"confidence": np.full(100, np.nan)}, outcomes, NEW.frame.variables, binary=True) is None


def test_a_draw_keeps_its_proxy_wherever_it_is_kept() -> None:
    draw = SimpleRandom().draw(NEW.frame, 50, np.random.default_rng(0))
    assert Proxy.of_draw(draw) is None
    carried = unpack_draw(pack_draw(Proxy.of_frame(NEW.outcomes, draw).carried_by(draw)))
    proxy = Proxy.of_draw(carried)
    assert proxy is not None
    assert proxy.value == pytest.approx(NEW.outcomes[draw.positions])
    assert proxy.frame_mean == pytest.approx(np.full(50, NEW.outcomes.mean()))
    found = assisted(SimpleRandomEstimator(), NEW.answer(carried))
    assert found.method == "srs/model-assisted"
    assert assisted(SimpleRandomEstimator(), NEW.answer(draw)).method == "srs/mid-p"


def test_the_variance_of_two_phases_is_that_of_both() -> None:
    """Over repetitions of both phases the estimates spread as the standard error says."""
    guesses = 0.7 * NEW.outcomes + 0.3 * np.random.default_rng(5).random(3000)
    values, errors = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        draw = SimpleRandom().draw(NEW.frame, 200, rng)
        others = rng.choice(3000, 400, replace=False)
        proxy = Proxy.of_sample(guesses[draw.positions], guesses[others], 3000)
        found = assisted(SimpleRandomEstimator(), NEW.answer(proxy.carried_by(draw)))
        values.append(found.value)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)
    alone = [SimpleRandomEstimator().estimate(NEW.answer(SimpleRandom().draw(NEW.frame, 200, np.random.default_rng(s))))
             for s in range(20)]  # fmt: skip
    assert 0.5 < np.mean(errors) / np.mean([each.standard_error for each in alone]) < 0.8


def test_the_whole_frame_as_a_sample_has_no_variance() -> None:
    draw = SimpleRandom().draw(NEW.frame, 50, np.random.default_rng(0))
    assert Proxy.of_sample(NEW.outcomes[draw.positions], NEW.outcomes, 3000).mean_variance == 0
    with pytest.raises(InputError, match="1 to 3000 other inputs"):
        Proxy.of_sample(NEW.outcomes[draw.positions], NEW.outcomes[:0], 3000)
