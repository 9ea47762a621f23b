from __future__ import annotations

from opmon.scoring.devices import CPU, CUDA
from opmon.scoring.placement import Placement


def test_the_device_is_where_most_operators_run() -> None:
    mixed = Placement.of([CUDA, CPU], [(CUDA, "Conv"), (CUDA, "Relu"), (CPU, "Cast")])
    assert (mixed.device, mixed.beside_cpu, mixed.total) == ("cuda", 2, 3)
    assert str(mixed) == "2 of 3 operators on cuda, 1 on cpu (Cast)"


def test_a_provider_that_was_loaded_and_has_nothing_to_do_is_not_the_device() -> None:
    trees = Placement.of([CUDA, CPU], [(CPU, "TreeEnsembleClassifier"), (CPU, "Cast"), (CPU, "Cast")])
    assert (trees.device, trees.beside_cpu) == ("cpu", 0)
    assert str(trees) == "3 of 3 operators on cpu"
    assert trees.on_cpu == "Cast, TreeEnsembleClassifier"


def test_a_model_without_operators_runs_on_the_cpu() -> None:
    assert (Placement.of([CUDA, CPU], []).device, str(Placement.of([CPU], []))) == ("cpu", "no operators")


def test_only_some_kinds_are_named() -> None:
    kinds = [(CPU, f"Kind{i}") for i in range(9)]
    assert Placement.of([CPU], kinds).on_cpu.endswith("Kind4, …")
