from __future__ import annotations

import dataclasses
import threading

import numpy as np
import onnx
import pytest

from opmon.errors import InputError, ModelError
from opmon.scoring._batching import lanes_by_memory, size_by_memory, size_by_probe
from opmon.scoring._running import Runner
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
    probed = dataclasses.replace(usual, runner=Runner(dataclasses.replace(usual.session, bound=True), batch_size=0))
    for first, second in zip(usual.score(fed(rows)), probed.score(fed(rows)), strict=True):
        assert (first.predictions == second.predictions).all()
        assert first.variables["confidence"] == pytest.approx(second.variables["confidence"], abs=1e-6)


def test_bound_inputs_give_what_unbound_ones_give(mlp) -> None:
    session, x = open_session(mlp(), "cpu"), np.ones((5, 6), np.float32)
    bound = dataclasses.replace(session, bound=True)
    assert (bound.run(["scores"], {"x": x})[0] == session.run(["scores"], {"x": x})[0]).all()


def test_lanes_are_for_small_models(mlp) -> None:
    model = onnx.load(str(mlp(hidden=5)))
    per_row = 2 * 4 * (6 + 5)
    assert lanes_by_memory(model, threads=2) == 2
    assert lanes_by_memory(model, threads=64) == 8
    assert lanes_by_memory(model, threads=64, budget=3 * 256 * per_row) == 3
    assert lanes_by_memory(model, threads=64, budget=256 * per_row - 1) == 1
    assert size_by_memory(model, lanes=4, budget=400 * per_row) == 64


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_any_number_of_lanes_says_the_same_in_the_same_order(mlp, fed, lanes) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 6))
    usual = Scorer.open(mlp(), "classification", device="cpu", threads=1, lanes=1, batch_size=64)
    other = Scorer.open(mlp(), "classification", device="cpu", threads=4, lanes=lanes, batch_size=64)
    for first, second in zip(usual.score(fed(rows, 700)), other.score(fed(rows, 700)), strict=True):
        assert (first.rows == second.rows).all()
        assert (first.predictions == second.predictions).all()
        assert (first.variables["confidence"] == second.variables["confidence"]).all()


def test_all_rows_at_once_and_none(mlp) -> None:
    x = np.random.default_rng(0).normal(size=(333, 6)).astype(np.float32)
    runner = Runner(open_session(mlp(), "cpu", threads=1), batch_size=50, lanes=2)
    assert runner.run(["scores"], {"x": x})[0] == pytest.approx(runner.session.run(["scores"], {"x": x})[0], abs=1e-5)
    assert runner.run(["scores"], {"x": x[:0]})[0].shape == (0, 4)
    assert len(Runner(open_session(mlp(batch=7), "cpu"), lanes=2).run(["scores"], {"x": x})[0]) == 333


def test_who_stops_listening_stops_the_lanes(mlp, fed) -> None:
    before = threading.active_count()
    scored = Scorer.open(mlp(), "classification", device="cpu", lanes=2).score(fed(np.zeros((5000, 6)), 100))
    next(scored)
    scored.close()
    assert threading.active_count() == before


def test_an_error_in_a_lane_is_the_callers(mlp) -> None:
    runner = Runner(open_session(mlp(), "cpu"), batch_size=2, lanes=2)
    with pytest.raises(ModelError, match="does not run on"):
        runner.run(["scores"], {"x": np.zeros((9, 4), np.float32)})


def test_lanes_of_none_are_refused(mlp) -> None:
    with pytest.raises(InputError, match="lanes must be at least 1; got 0"):
        Scorer.open(mlp(), "classification", lanes=0)
