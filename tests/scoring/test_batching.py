from __future__ import annotations

import dataclasses
import gc
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from opmon.errors import InputError, ModelError, OutOfMemory
from opmon.scoring._batching import Sizes, lanes_by_memory, size_by_memory
from opmon.scoring._running import Runner
from opmon.scoring.heads.confidence import Confidence
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

    def __init__(self, cost, outputs=lambda size: np.zeros(size), **changes) -> None:
        self.now, self.cost, self.outputs, self.tried = 0.0, cost, outputs, []
        self.sizes = Sizes(**{"tried": True, "most": 4096, "clock": lambda: self.now, **changes})

    def run(self, size: int):
        self.tried.append(size)
        self.now += self.cost(size)
        return [self.outputs(size)]

    def size(self, count: int) -> int:
        return self.sizes.size(count, self.run)


def test_the_quickest_size_is_taken() -> None:
    assert Machine(lambda size: 0.001 + size * 1e-6).size(100_000) == 4096
    assert Machine(lambda size: size * 1e-6 if size <= 64 else size * 1.5e-6).size(100_000) == 64
    assert Machine(lambda size: size * (1e-6 if size != 64 else 2e-6)).size(100_000) == 4096  # the machine was busy
    assert Machine(lambda size: 0.0001 + size * 1e-6, most=256).size(300) == 256


def test_of_sizes_that_are_about_as_quick_the_largest_is_taken() -> None:
    assert Machine(lambda size: size * (1e-6 if size < 1000 else 1.02e-6)).size(100_000) == 4096


def test_a_few_first_inputs_do_not_settle_the_size() -> None:
    machine = Machine(lambda size: 0.001 + size * 1e-6)
    assert machine.size(7) == 1024
    assert machine.tried == []
    assert machine.size(100) == 1024
    assert max(machine.tried) == 64
    assert machine.size(5000) == 4096
    before = len(machine.tried)
    assert machine.size(7) == machine.size(9999) == 4096
    assert len(machine.tried) == before


def test_trying_ends_soon() -> None:
    """A model that takes 20 ms for an input is not tried with a thousand of them."""
    machine = Machine(lambda size: size * 0.02)
    assert machine.size(100_000) == 16
    assert machine.tried == [16]
    quick = Machine(lambda size: size * 1e-6)
    quick.size(100_000)
    assert quick.now < 0.1


def test_a_size_that_does_not_fit_is_left() -> None:
    def cost(size: int) -> float:
        if size > 256:
            raise OutOfMemory
        return 0.01

    assert Machine(cost).size(100_000) == 256


def test_a_size_that_changes_the_numbers_is_not_chosen_by_the_clock() -> None:
    """The scales of dynamic quantisation are of the whole batch."""
    cost = lambda size: size * (1e-6 if size <= 64 else 9e-6)  # noqa: E731
    assert Machine(cost).size(100_000) == 64
    assert Machine(cost, lambda size: np.full(size, size)).size(100_000) == 1024
    assert Machine(cost, lambda size: np.full(size, size), exact=False).size(100_000) == 64


def test_inputs_that_the_model_fails_on_put_off_the_trying() -> None:
    failing = [True, True]

    def cost(size: int) -> float:
        if failing:
            failing.pop()
            raise ModelError("this row")
        return size * 1e-6

    machine = Machine(cost, first=16, most=16, usual=8)
    assert [machine.size(100) for _ in range(3)] == [8, 8, 16]


def test_probing_a_real_model_changes_no_number(mlp, fed) -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 6))
    usual = Scorer.open(mlp(), "classification", device="cpu", batch_size=1024)
    probed = Scorer.open(mlp(), "classification", device="cpu")
    assert probed.runner.sizes.tried
    for first, second in zip(usual.score(fed(rows)), probed.score(fed(rows)), strict=True):
        assert (first.predictions == second.predictions).all()
        assert (first.variables["confidence"] == second.variables["confidence"]).all()
    assert max(probed.runner.sizes._rates) == 256


def test_a_bound_session_says_the_same(mlp, fed) -> None:
    """What a GPU does, on the CPU."""
    rows = np.random.default_rng(0).normal(size=(700, 6))
    usual = Scorer.open(mlp(), "classification", device="cpu")
    session = dataclasses.replace(usual.session, bound=("cpu", 0))
    bound = dataclasses.replace(usual, runner=Runner(session, Sizes.of(onnx.load(str(mlp())), "cuda")))
    for first, second in zip(usual.score(fed(rows)), bound.score(fed(rows)), strict=True):
        assert (first.predictions == second.predictions).all()
        assert first.variables["confidence"] == pytest.approx(second.variables["confidence"], abs=1e-6)


@pytest.fixture
def greedy(graph):
    """A model that asks ONNX Runtime for more memory than any machine has where it is given over 100 inputs at once."""
    nodes = [
        helper.make_node("Shape", ["x"], ["count"], end=1),
        helper.make_node("Sub", ["count", "room"], ["beyond"]),
        helper.make_node("Max", ["beyond", "none"], ["much"]),
        helper.make_node("Mul", ["much", "tera"], ["size"]),
        helper.make_node("ConstantOfShape", ["size"], ["memory"]),
        helper.make_node("ReduceSum", ["memory"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    numbers = {"room": [100], "none": [0], "tera": [2**40]}
    given, made = ("x", TensorProto.FLOAT, ["n", 3]), ("y", TensorProto.FLOAT, ["n", 3])
    return graph(nodes, [given], [made], {name: np.array(value, np.int64) for name, value in numbers.items()})


class Counted(Runner):
    """A runner that notes how many inputs each run had."""

    def _once(self, names, part):
        self.sizes.runs.append(len(part["x"]))
        return super()._once(names, part)


@pytest.mark.parametrize("bound", [None, ("cpu", 0)])
def test_a_batch_that_was_too_large_for_the_memory_is_not_tried_again(greedy, bound) -> None:
    x = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    sizes = Sizes()
    sizes.runs = []
    runner = Counted(dataclasses.replace(open_session(greedy, "cpu", threads=1), bound=bound), sizes)
    assert (runner.run(["y"], {"x": x})[0] == x).all()
    assert [size for size in sizes.runs if size > 100] == [1024, 512, 256, 128]
    assert sizes.most == 64
    again = len(sizes.runs)
    runner.run(["y"], {"x": x})
    assert set(sizes.runs[again:]) <= {64, 3000 % 64}


def test_one_input_too_large_for_the_memory_is_an_error_and_no_bad_row(greedy) -> None:
    model = onnx.load(str(greedy))
    for tensor in model.graph.initializer:
        if tensor.name == "room":
            tensor.CopyFrom(numpy_helper.from_array(np.array([0], np.int64), "room"))
    runner = Runner(open_session(model.SerializeToString(), "cpu", threads=1))
    with pytest.raises(OutOfMemory, match=r"memory of the device \(cpu\) does not suffice for x float32\[1, 3\]"):
        runner.run(["y"], {"x": np.zeros((50, 3), np.float32)})


def test_a_model_that_takes_one_input_at_a_time_is_given_one(graph) -> None:
    """Whatever its file says: an inner shape is written for one."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    given, made = ("x", TensorProto.FLOAT, ["n", 4]), ("y", TensorProto.FLOAT, ["n", 4])
    path = graph(nodes, [given], [made], {"shape": np.array([1, 4])})
    sizes = Sizes.of(onnx.load(str(path)), "cpu")
    sizes.runs = []
    runner = Counted(open_session(path, "cpu"), sizes)
    x = np.arange(400, dtype=np.float32).reshape(100, 4)
    assert (runner.run(["y"], {"x": x})[0] == x).all()
    assert sizes.most == 1
    again = len(sizes.runs)
    runner.run(["y"], {"x": x})
    assert sizes.runs[again:] == [1] * 100


def test_bound_inputs_give_what_unbound_ones_give(mlp) -> None:
    session, x = open_session(mlp(), "cpu"), np.ones((5, 6), np.float32)
    bound = dataclasses.replace(session, bound=("cpu", 0))
    assert (bound.run(["scores"], {"x": x})[0] == session.run(["scores"], {"x": x})[0]).all()


def sessions() -> int:
    """How many are alive."""
    return sum(isinstance(item, onnxruntime.InferenceSession) for item in gc.get_objects())


@dataclasses.dataclass(frozen=True)
class Watching(Confidence):
    """A head that notes how many sessions are alive while the graph is made."""

    alive: list[int]

    def nodes(self, graph):
        self.alive.append(sessions())
        return super().nodes(graph)


def test_no_session_is_kept_while_another_is_made(mlp) -> None:
    """A device has room for one model, not for two."""
    gc.collect()
    before, alive = sessions(), []
    scorer = Scorer.open(mlp(), "classification", device="cpu", heads={"watching": Watching(alive)})
    assert alive == [before]
    assert sessions() == before + 1
    assert list(scorer.variables) == ["watching"]


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
    runner = Runner(open_session(mlp(), "cpu", threads=1), Sizes(50, 50), lanes=2)
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
    runner = Runner(open_session(mlp(), "cpu"), Sizes(2, 2), lanes=2)
    with pytest.raises(ModelError, match="does not run on"):
        runner.run(["scores"], {"x": np.zeros((9, 4), np.float32)})


def test_lanes_of_none_are_refused(mlp) -> None:
    with pytest.raises(InputError, match="lanes must be at least 1; got 0"):
        Scorer.open(mlp(), "classification", lanes=0)
