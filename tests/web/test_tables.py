"""Measures of classes as tables."""

from __future__ import annotations

from opmon.quantities import Quantity
from opmon.store.measured import Measured
from opmon.types import Estimate
from opmon.web.tables import tables_of


def measured(name: str, measure: str = "m", value: float | None = 0.25) -> Measured:
    quantity = Quantity(name, share=True)
    if value is None:
        return Measured(measure, quantity, None, "no input of it was drawn")
    return Measured(
        measure, quantity, Estimate(value, value - 0.1, value + 0.1, 50, 500, 1.0, "srs", quantity=quantity)
    )


def test_each_measure_is_in_one_table() -> None:
    classes = ("cat", "dog as cat", "owl")
    cells = [measured(f"confusion[{a} as {b}]", "confusion matrix") for a in classes for b in classes]
    of_classes = [measured(f"{base}[{name}]", base) for base in ("recall", "precision") for name in classes]
    found = tables_of([measured("F1"), *of_classes[:-1], *cells])
    assert [each.quantity.name for each in found.plain] == ["F1"]
    assert found.per_class is not None
    assert found.per_class.measures == ["recall", "precision"]
    assert [name for name, _ in found.per_class.rows] == list(classes)
    assert found.per_class.rows[2][1][1] is None
    (matrix,) = found.confusions
    assert matrix.classes == list(classes)
    assert matrix.cells[1][2].quantity.name == "confusion[dog as cat as owl]"


def test_one_measure_of_one_class_is_no_table() -> None:
    found = tables_of([measured("recall[fraud]"), measured("F1")])
    assert found.per_class is None
    assert len(found.plain) == 2
