"""The key that divides the inputs into slices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, field_validator, model_serializer, model_validator

from opmon.config.fields import Count, Number
from opmon.config.part import Part, at_key
from opmon.problems import traits
from opmon.types.slicing import MOST, PREDICTION, Cut, Kind, number
from opmon.wording import percent

if TYPE_CHECKING:
    from opmon.config.monitor import MonitorSettings

MOST_VALUES, MOST_SLICES = 50, 100
"""The most values of one column that are told apart, and the most slices of a monitor."""
MOST_PARTS = 0.12
"""No more parts than this share of the budget may be promised anything: each needs draws in every wave."""
MOST_ASKED = 0.8
"""No more than this share of the budget may be promised to slices: the rest speaks for all inputs."""


def _text(value: object) -> object:
    """A value as the log's are written: true, 12, 2026-01-31."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return number(value)
    return value.isoformat() if isinstance(value, date) else value


class SliceSettings(Part):
    """Slices by one column of the log, one variable or the predicted class; or ``cross``, slices of several at once.

    The most frequent values have a slice each (``most`` of them), or those in ``values``, or the bands between
    ``edges``. All other values are one slice together, and so are inputs without a value.
    """

    column: str | None = Field(default=None, min_length=1)
    """The column of the log (also inside another: ``customer.country``), the variable, or ``prediction``."""
    cross: tuple[str, ...] | None = None
    """The columns whose slices are crossed."""
    values: tuple[Annotated[str, BeforeValidator(_text), Field(min_length=1)], ...] | None = None
    edges: tuple[Number, ...] | None = None
    most: Annotated[Count, Field(le=MOST_VALUES)] = MOST
    at_least: Count | None = None
    """So many inputs of each of these slices are drawn at least, where there are as many."""
    crossed: bool = True
    """Whether opmon may cross it with others where there are inputs enough."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: object) -> object:
        if isinstance(data, str):
            return {"column": data}
        if isinstance(data, Sequence):
            return {"cross": list(data)}
        if not isinstance(data, Mapping) or len(data) != 1 or next(iter(data)) in ("column", "cross"):
            return data
        name, told = next(iter(data.items()))
        if name in cls.model_fields and not isinstance(told, Mapping):
            raise ValueError(f"must say of which column: {{country: {{{name}: …}}}}")
        if isinstance(told, Mapping):
            return {"column": str(name), **told}
        if isinstance(told, Sequence) and not isinstance(told, str) and told:
            of_numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in told)
            return {"column": str(name), "edges" if of_numbers else "values": list(told)}
        raise at_key(str(name), "takes edges such as [0, 30, 60], values such as [DE, FR], or keys")

    @field_validator("edges")
    @classmethod
    def _growing(cls, edges: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if edges is None:
            return None
        if not edges or list(edges) != sorted(set(edges)):
            told = ", ".join(map(number, sorted(set(edges))))
            raise ValueError("must be numbers that grow" + (f", such as [{told}]" if told else ", such as [0, 30, 60]"))
        if len(edges) > MOST_VALUES:
            raise ValueError(f"must be {MOST_VALUES} at most; got {len(edges)}")
        return edges

    @field_validator("values")
    @classmethod
    def _different(cls, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if values is None:
            return None
        if not values:
            raise ValueError("must name at least one value, or be left out for the most frequent ones")
        if len(values) > MOST_VALUES:
            raise ValueError(f"must be {MOST_VALUES} at most; got {len(values)}: cut numbers by edges instead")
        twice = next((each for each in values if values.count(each) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is there twice")
        return values

    @model_validator(mode="after")
    def _one_of_them(self) -> SliceSettings:
        if (self.column is None) == (self.cross is None):
            raise ValueError("must name a column, or several in a list to cross them")
        if self.cross is not None:
            if not 2 <= len(self.cross) <= 3 or len(set(self.cross)) < len(self.cross):
                raise at_key("cross", "must be two or three different columns")
            further = [key for key in self.model_fields_set if key not in ("cross", "column")]
            if further:
                raise at_key(further[0], "is said of one column: list that column beside the crossing")
        if self.values is not None and self.edges is not None:
            raise at_key("edges", "give values or edges, not both")
        return self

    @model_serializer(mode="plain")
    def shown(self) -> object:
        """As in the file."""
        if self.cross is not None:
            return list(self.cross)
        told = {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}
        keys = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}
        keys = {key: value for key, value in keys.items() if value is not None and key != "column"}
        if not keys:
            return self.column
        return {self.column: keys["edges"] if keys.keys() == {"edges"} else keys}


def cuts_of(monitor: MonitorSettings) -> tuple[Cut, ...]:
    """How the inputs are divided, those columns too that are only crossed."""
    listed = {each.column: each for each in monitor.slices if each.column is not None}
    crossed = [name for each in monitor.slices for name in each.cross or ()]
    missing = dict.fromkeys(name for name in crossed if name not in listed)
    told = (*listed.items(), *((name, SliceSettings(column=name, crossed=False)) for name in missing))
    return tuple(
        Cut(name, _kind(monitor, name), each.values, each.edges, each.most, each.at_least or 0, each.crossed)
        for name, each in told
    )


def crossings_of(monitor: MonitorSettings) -> tuple[tuple[str, ...], ...]:
    """The crossings that are asked for."""
    return tuple(each.cross for each in monitor.slices if each.cross is not None)


def _kind(monitor: MonitorSettings, name: str) -> Kind:
    if name == PREDICTION:
        return "prediction"
    return "variable" if name in monitor.at_hand else "column"


def check_slices(monitor: MonitorSettings) -> None:
    """The slices are those of this monitor's columns, few enough, and what they are promised can be kept."""
    cuts = cuts_of(monitor)
    listed = [each.column for each in monitor.slices if each.column is not None]
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise at_key("slices", f"{twice!r} is listed twice; leave one of them out")
    for cut in cuts:
        _one_fits(monitor, cut)
    many = sum(cut.room for cut in cuts)
    if many > MOST_SLICES:
        raise at_key(
            "slices",
            f"these are up to {many} slices, and {MOST_SLICES} are the most: the more there are, the less can be said "
            "of each. Leave columns out, or say most: 5",
        )
    _promises_can_be_kept(monitor, cuts)
    _watched_are_there(monitor, [cut.name for cut in cuts])


def _watched_are_there(monitor: MonitorSettings, names: list[str]) -> None:
    """Rules watch slices that are configured."""
    for place, rule in enumerate(monitor.rules):
        watched = rule.plugin.watched_slices()
        if watched is None or watched in names or (watched == "slices" and names):
            continue
        there = f"prediction, slices, {', '.join(names)}" if names else "prediction"
        also = "; a variable needs edges that cut it" if watched in monitor.at_hand else ""
        what = f"by: {watched} is none of the columns in 'slices' of this monitor{also}; there are: {there}"
        raise at_key("rules", what, place)


def _one_fits(monitor: MonitorSettings, cut: Cut) -> None:
    truth = {name for _, name in monitor.truth_columns}
    if cut.name in truth:
        raise at_key(
            "slices",
            f"{cut.name!r} is the truth, which is not known of all inputs when they are divided; name a column that "
            "is there when the model answers, or prediction",
        )
    if cut.name == monitor.columns.id:
        raise at_key("slices", f"{cut.name!r} is the inputs' id, another one for each: there would be no slice")
    if cut.of == "prediction" and monitor.problem == "multilabel":
        raise at_key(
            "slices",
            "prediction is one class, and with problem: multilabel several may be predicted: leave it out. Measures of "
            "a class, such as {precision: {class: NAME}}, tell how good those predictions are",
        )
    numeric = cut.of == "variable" or (cut.of == "prediction" and traits(monitor.problem).of_numbers)
    if numeric and cut.edges is None:
        raise at_key("slices", f"{cut.name!r} is a number: give edges that cut it, such as {{{cut.name}: [0.1, 0.5]}}")
    if cut.of == "prediction" and not numeric and cut.edges is not None:
        raise at_key("slices", "the predicted class is no number that edges could cut: leave them out")
    names = monitor.class_names
    stray = [each for each in cut.values or () if cut.of == "prediction" and names and each not in names]
    if stray:
        raise at_key("slices", f"{stray[0]!r} is none of the classes, which are: {', '.join(names or ())}")


def _promises_can_be_kept(monitor: MonitorSettings, cuts: Iterable[Cut]) -> None:
    asking = [cut for cut in cuts if cut.at_least]
    if not asking:
        return
    if not monitor.sampler.plugin.reserves:
        from opmon import plugins

        can = ", ".join(name for name in plugins.names("sampler") if plugins.make("sampler", name).reserves)
        raise at_key(
            "slices",
            f"at_least wants draws set apart for {asking[0].name!r}, and the sampler {monitor.sampler.type!r} cannot "
            f"do that without losing what its estimate stands on; the samplers that can: {can}",
        )
    budget = monitor.sampler.budget
    levels = [len(cut.fixed) if cut.fixed is not None else cut.most for cut in asking]
    parts = math.prod(many + 1 for many in levels) - 1
    borne = max(1, int(MOST_PARTS * budget))
    if parts > borne:
        raise at_key(
            "slices",
            f"at_least divides the inputs into up to {parts} parts that each need draws of their own, and {budget} "
            f"labels bear {borne}: name the values that matter, such as {{country: {{values: [DE], at_least: 30}}}}",
        )
    promised = max(cut.at_least * (len(cut.fixed) if cut.fixed is not None else cut.most) for cut in asking)
    if promised > MOST_ASKED * budget:
        many = max(asking, key=lambda cut: cut.at_least * cut.room)
        raise at_key(
            "slices",
            f"at_least of {many.name!r} promises up to {promised} of the {budget} labels of a round, and "
            f"{percent(MOST_ASKED, 0)} of them are the most: ask for less, name fewer values, or raise sampler.budget "
            f"to {math.ceil(promised / MOST_ASKED)}",
        )
