"""Quantities as databases and programs keep them: by name and unit, with what the name does not tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace

from opmon.quantities import KNOWN, MEAN_SQUARED_ERROR, Quantity, squared
from opmon.wording import PLURALS

_OF_ONE = re.compile(rf"share within 1 ({'|'.join(sorted(PLURALS))})")
_BASE = re.compile(r"^(macro|weighted|micro) |\[.*\]$", re.DOTALL)


def as_kept(quantity: Quantity) -> dict[str, str | bool]:
    """The quantity as JSON can hold it: :func:`kept` reads it.

    >>> from opmon.quantities import ACCURACY
    >>> as_kept(ACCURACY)
    {'quantity': 'accuracy', 'unit': ''}
    """
    known = named(quantity.name, quantity.unit)
    more = {each.name: getattr(quantity, each.name) for each in fields(quantity) if each.name not in ("name", "unit")}
    differs = {name: value for name, value in more.items() if value != getattr(known, name)}
    return {"quantity": quantity.name, "unit": quantity.unit} | differs


def kept(values: Mapping[str, object]) -> Quantity:
    """The quantity that :func:`as_kept` gave; other values among these are left aside.

    The unit is spelt as it is now, however it was when it was kept: rounds of both spellings are put together.

    >>> from opmon.quantities import ACCURACY, mean_squared_error
    >>> kept({"quantity": "mean squared error", "unit": "(€)²"}) == mean_squared_error("€")
    True
    >>> recall = Quantity("recall[fraud]", share=True)
    >>> kept(as_kept(recall)) == recall, kept({"quantity": "accuracy", "value": 0.9}) == ACCURACY
    (True, True)
    """
    own = {each.name: values[each.name] for each in fields(Quantity) if values.get(each.name) is not None}
    known = named(str(values["quantity"]), str(own.pop("unit", "")))
    plain = _without_square(known)
    known = known if plain is None else replace(known, unit=squared(plain))
    return replace(known, **{name: value for name, value in own.items() if name != "name"})  # type: ignore[arg-type]


def named(name: str, unit: str = "") -> Quantity:
    """The quantity of this name and unit, where nothing else of it was kept.

    >>> from opmon.quantities import ACCURACY, RECALL, mean_squared_error
    >>> named("accuracy") == ACCURACY, named("mean squared error", "days²") == mean_squared_error("days")
    (True, True)
    >>> named("recall[fraud]") == RECALL.of("fraud"), named("macro F1").share
    (True, True)
    """
    known = {quantity.name: quantity for quantity in KNOWN}
    base = known.get(_BASE.sub("", name), Quantity(name))
    return replace(base, name=name[:-1] if _OF_ONE.fullmatch(name) else name, unit=unit)


def names(quantity: Quantity) -> tuple[str, ...]:
    """Its name, with the other one that databases may have: one day was "1 days" once.

    >>> names(Quantity("share within 1 day", share=True)), names(Quantity("accuracy"))
    (('share within 1 day', 'share within 1 days'), ('accuracy',))
    """
    older = f"{quantity.name}s"
    return (quantity.name, older) if _OF_ONE.fullmatch(older) else (quantity.name,)


def spellings(quantity: Quantity) -> tuple[str, ...]:
    """The unit of a quantity, with the other ways in which databases may have it: squared ones had brackets once.

    >>> from opmon.quantities import MAE, mean_squared_error
    >>> spellings(mean_squared_error("€")), spellings(MAE.measured_in("m²"))
    (('€²', '(€)²'), ('m²',))
    """
    plain = _without_square(quantity)
    if plain is None:
        return (quantity.unit,)
    return tuple(dict.fromkeys((quantity.unit, f"{plain}²", f"({plain})²")))


def _without_square(quantity: Quantity) -> str | None:
    """The unit of the labels of a mean squared error; None where there is none."""
    if _BASE.sub("", quantity.name) != MEAN_SQUARED_ERROR.name or not quantity.unit.endswith("²"):
        return None
    inner = quantity.unit[:-1]
    return inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
