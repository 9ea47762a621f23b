"""One monitor: its keys, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from opmon import plugins, quantities
from opmon.abc import USUAL, Head, Source
from opmon.adjudication import Decides
from opmon.config.address import name_in
from opmon.config.consistency import FREE, check
from opmon.config.device import DeviceSettings
from opmon.config.estimate import ProxySettings
from opmon.config.measures import MeasureSettings, named
from opmon.config.monitor_keys import MonitorKeys
from opmon.config.reading import inputs_of, truths_of
from opmon.labels.terms import QueueTerms
from opmon.problems import traits
from opmon.quantities import Quantity
from opmon.replies import Replies
from opmon.scales import Scale
from opmon.scoring.devices import Device
from opmon.spellings import AS_SPELT, Spellings
from opmon.types import Document, Guide
from opmon.where import Where, parse

if TYPE_CHECKING:
    from opmon.queries.planning import Known
    from opmon.queries.watch import Watch


LOOKED_BACK = 30
"""So many rounds expectations, drift, proxies and annotators' errors look back on at most."""
JOINED = 50
"""So many rounds are joined at most, where a window has only a length."""


class MonitorSettings(MonitorKeys):
    """A watch over one registered model."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check(self)
        return self

    @property
    def quantity(self) -> Quantity:
        """What the monitor estimates before all else."""
        return self.usual_quantity if self.main_measure is None else self.main_measure.quantity(self.unit)

    @property
    def usual_quantity(self) -> Quantity:
        """What a monitor of its problem estimates where nothing else is said."""
        return quantities.of(self.problem, self.unit, self.scale)

    @property
    def scale(self) -> Scale | None:
        """How outputs are judged; None where none are."""
        return None if traits(self.problem).compares else self.labels.scale or "pass_fail"

    @property
    def judged_column(self) -> str | None:
        """The column with the outputs that people judge, and therefore see; None where they say what the truth is."""
        return None if traits(self.problem).compares else self.columns.prediction

    @property
    def decides(self) -> Decides | None:
        """What decides where annotators differ; None: the majority of them, whole answer by whole answer."""
        if self.labels.decides is None and self.scale not in (None, "pass_fail"):
            return "mean"
        return "by_class" if self.labels.decides is None and self.problem == "multilabel" else self.labels.decides

    def replies(self, classes: Sequence[str] | None = None) -> Replies:
        """What may be answered; ``classes`` are the model's, where the configuration names none."""
        known = (self.class_names or classes) if traits(self.problem).of_classes else None
        return Replies(self.problem, known, self.spellings, self.scale)

    def watched(self, name: str | None) -> MeasureSettings:
        """The measure that a rule names, or the main one; a :class:`ValueError` where nothing has that name."""
        usual = MeasureSettings.model_validate(self.usual_quantity.key)
        main = self.main_measure or usual
        if name is None or name in (main.type, main.key):
            return main
        if name == USUAL:
            return usual if self.main_measure is None else named(self.measures, usual.key)
        return named((*self.measures, *((usual,) if self.main_measure is None else ())), name)

    @property
    def main_measure(self) -> MeasureSettings | None:
        """The measure that figures, rules and the timeline follow; None where that is the usual one of its problem."""
        usual = (None, self.usual_quantity.name, self.usual_quantity.key)
        if self.main in usual:
            return None
        found = named(self.measures, self.main or "")
        return None if found.quantity(self.unit) == self.usual_quantity else found

    @property
    def threshold(self) -> float | None:
        """The line that figures draw: that of the first rule on the main measure which has one."""
        rules, main = (rule.plugin for rule in self.rules), self.quantity.name
        lines = (rule.line() for rule in rules if self.watched(rule.watches()).key == main)
        return next((line for line in lines if line is not None), None)

    @property
    def guide(self) -> Guide:
        """What annotators are told."""
        picture = self.columns.image or (None if self.inputs.image is None else self.inputs.image.column)
        text = self.columns.text or (None if self.inputs.text is None else self.inputs.text.column)
        told = {name: guide.text for name, guide in self.labels.classes.items()}
        classes = {name: told.get(name, "") for name in self.class_names or tuple(told)}
        guidelines, needs = self.labels.guidelines_text, self.labels.overlap.needs
        shown = (picture, text, self.scale, self.judged_column)
        return Guide(self.problem, classes, guidelines, self.unit, needs, *shown)

    @property
    def watch(self) -> Watch:
        """What the views of the monitor depend on."""
        from opmon.queries.watch import Watch

        return Watch(
            name=self.name,
            quantity=self.quantity,
            acting_rules=tuple(rule.name for rule in self.rules if rule.acts),
            advising_rules=tuple(rule.name for rule in self.rules if not rule.acts),
            rolling_rounds=self.rolling.rounds,
            rolling_within=self.rolling.within,
            min_inputs=self.round.min_inputs,
            max_open=self.labels.max_open,
            truth=self.truth is not None,
            max_age=self.round.max_age,
            next_after=self.schedule.next_after,
            silent_from=self.schedule.silent_from,
            provider=None if self.labels.provider is None else self.labels.provider.identity,
        )

    @property
    def plans_from(self) -> Known:
        """What a plan of its labels starts from, before any round tells more."""
        from opmon.queries.planning import Known

        given = self.sampler.parameters.get("aim")
        aim = float(given) if isinstance(given, int | float) else 0.5
        chosen = self.main_measure
        main = None if chosen is None else self.quantity.name
        of_all = chosen is not None and chosen.plugin.of_all(self.problem, self.class_names or ("", "other"))
        names, unknown = self.class_names or (), self.class_names is None and traits(self.problem).of_classes
        aims = chosen is None or unknown or chosen.plugin.aimed_at(self.problem, names)
        whole = self.watched(None).plugin.all_or_nothing(self.problem, names or ("", "other"))
        return Known(
            *(self.quantity, self.problem, self.level, self.at_hand, aim),
            main=main,
            of_all=of_all,
            all_or_nothing=whole,
            aims=aims,
        )

    @property
    def newest_kept(self) -> int:
        """So many of the newest rounds are never pruned: what is configured may look back on them."""
        back = [rule.plugin.looks_back({}) or 0 for rule in self.rules]
        return max(LOOKED_BACK, self.rolling.rounds or JOINED, *back)

    @property
    def queue_terms(self) -> QueueTerms:
        """How its tasks are handed out to annotators."""
        provider = self.labels.provider
        return QueueTerms(self.labels.lease, None if provider is None else provider.identity)

    @property
    def may_run_code(self) -> bool:
        """Whether a model may be loaded that runs code of its own, to be converted and compared."""
        return self.convert_sklearn or self.scoring.trust

    @property
    def model_name(self) -> str:
        """The registered model that is watched, whichever version."""
        return name_in(self.model)

    @property
    def reads(self) -> Source:
        """The source, with what lies inside its columns where that is named, such as ``features.age``."""
        return inputs_of(self)

    @property
    def reads_truth(self) -> Source | None:
        """The source of truths that arrive by themselves, likewise; None where there is none of its own."""
        return truths_of(self)

    @property
    def truth_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of the log itself that hold the truth and its time, each with the key that names it."""
        if self.truth is None or self.truth.column is None:
            return ()
        named = (("column", self.truth.column), ("at", self.truth.at))
        return tuple((key, name) for key, name in named if name is not None)

    @property
    def proxy_column(self) -> ProxySettings | None:
        """The column of the log that assists the estimate; None where none does."""
        return self.estimate.proxy if isinstance(self.estimate.proxy, ProxySettings) else None

    @property
    def proxy(self) -> Document | None:
        """What assists the estimate, as the plan of a round keeps it; None where the labels alone make it."""
        if self.proxy_column is not None:
            return {"by": "column", "column": self.proxy_column.column, "says": self.proxy_column.says}
        if self.estimate.proxy == "learned":
            return {"by": "learned"}
        if self.judge is None or self.judge.as_labels:
            return None
        return {"by": "judge", "judge": self.judge.identity, "at_most": self.judge.most}

    @property
    def hidden(self) -> tuple[str, ...]:
        """What annotators and judges see nothing of, beside production's own answers: truths and proxies."""
        known = tuple(name for _, name in self.truth_columns)
        said = tuple(name for name in self.reads.answers if name != self.judged_column)
        return (*said, *known, *((self.proxy_column.column,) if self.proxy_column else ()))

    @property
    def where(self) -> Where | None:
        """Which rows of the log are inputs; None where all are."""
        return None if self.inputs.where is None else parse(self.inputs.where)

    @property
    def inclusion(self) -> str | None:
        """The column that says with which probability each row was logged; None where all were."""
        return self.columns.inclusion or self.source.plugin.inclusion

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes in the order of the model's output, where the configuration gives them."""
        return None if self.classes is None else tuple(self.classes)

    @property
    def spellings(self) -> Spellings:
        """What else the model, the log and annotators call the classes."""
        return Spellings.of(self.classes) if isinstance(self.classes, Mapping) else AS_SPELT

    @property
    def at_hand(self) -> tuple[str, ...]:
        """The variables that a frame of this monitor holds."""
        scored = self.scoring.by != "logged" or bool(self.columns.scores)
        free = FREE if traits(self.problem).of_classes and scored else ()
        return tuple(dict.fromkeys((*free, *(head.name for head in self.variables))))

    @property
    def runs_on(self) -> Device:
        """The device as scoring takes it."""
        return self.device.chosen if isinstance(self.device, DeviceSettings) else self.device

    @property
    def logged_variables(self) -> dict[str, Head]:
        """The variables that come from columns of the log, by name."""
        return {name: head for name, head in self._wanted().items() if head.columns}

    @property
    def heads(self) -> dict[str, Head]:
        """The variables to compute in the graph, by name: those that are listed, and the sampler's own.

        What comes with the probabilities anyway is not among them.
        """
        return {name: head for name, head in self._wanted().items() if not head.columns}

    def _wanted(self) -> dict[str, Head]:
        """The variables that are listed or drawn by, by name, without those that come with the probabilities."""
        heads = {head.name: head.plugin for head in self.variables}
        for name in self.drawn_by:
            if name not in heads and name not in FREE:
                heads[name] = plugins.make("head", name)
        return {name: head for name, head in heads.items() if name not in FREE or not traits(self.problem).of_classes}

    @property
    def drawn_by(self) -> tuple[str, ...]:
        """The variables that the sampler names."""
        return self.sampler.plugin.drawn_by()
