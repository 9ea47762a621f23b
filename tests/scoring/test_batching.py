from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import pytest

from opmon.scoring.batching import size_by_memory, size_by_probe
from opmon.scoring.scorer import Scorer
from opmon.scoring.session import open_session


def test_wide_activations_make_small_batches(mlp) -> None:
    model = onnx.load(str(mlp(hidden=5)))
    assert size_by_memory(model) == 1024
    per_row = 2 * 4 * (6 + 5)  # the first product reads 6 numbers and writes 5
    assert size_by_memory(model, budget=100 * per_row) == 64
    assert size_by_memory(model, budget=1) == 1


class Machine:
    """A clock, and a model whose runs take what ``cost`` says."""

    def __init__(self, cost) -> None:
        self.now, self.cost, self.tried = 0.0, cost, []

    def run(self, size: int) -> None:
        self.tried.append(size)
        self.now += self.cost(size)

    def size(self, most: int) -> int:
        return size_by_probe(self.run, most, lambda: self.now)


def test_the_quickest_size_is_taken() -> None:
    assert Machine(lambda size: 0.01 + size * 1e-6).size(100_000) == 4096
    assert Machine(lambda size: size * 1e-6).size(100_000) == 64
    assert Machine(lambda size: 0.01 + size * 1e-6).size(300) == 256
    assert Machine(lambda size: 1).size(10) == 10


def test_a_slow_model_is_not_tried_with_more() -> None:
    machine = Machine(lambda size: 0.6)
    machine.size(100_000)
    assert machine.tried == [64, 64]


def test_a_size_that_does_not_fit_is_left() -> None:
    def cost(size: int) -> float:
        if size > 256:
            raise MemoryError
        return 0.01

    assert Machine(cost).size(100_000) == 256


def test_a_probed_scorer_says_the_same(mlp, fed) -> None:
    """What a GPU does, on the CPU."""
    rows = np.random.default_rng(0).normal(size=(700, 6))
    usual = Scorer.open(mlp(), "classification", device="cpu")
    probed = dataclasses.replace(usual, batch_size=0, session=dataclasses.replace(usual.session, bound=True))
    for first, second in zip(usual.score(fed(rows)), probed.score(fed(rows)), strict=True):
        assert (first.predictions == second.predictions).all()
        assert first.variables["confidence"] == pytest.approx(second.variables["confidence"], abs=1e-6)


def test_bound_inputs_give_what_unbound_ones_give(mlp) -> None:
    session, x = open_session(mlp(), "cpu"), np.ones((5, 6), np.float32)
    bound = dataclasses.replace(session, bound=True)
    assert (bound.run(["scores"], {"x": x})[0] == session.run(["scores"], {"x": x})[0]).all()
