"""The keys of ``robustness:``: which combined perturbations a monitor's model is tested under, and what is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, InstanceOf, ValidationInfo, field_validator, model_validator

from opmon import plugins
from opmon.abc import Perturbation
from opmon.config.fields import Count, LocalPath, Number, absolute, folder_of, whole
from opmon.config.part import Part, at_key
from opmon.config.plugged import Plugged
from opmon.errors import InputError
from opmon.robustness.perturbations.lexicon import parse_synonyms
from opmon.robustness.query.named import NAMED, question
from opmon.robustness.query.parse import parse
from opmon.robustness.space import Space

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,49}\Z")
_RESERVED = frozenset({"order", "severity_sum", "quality", "and", "or", "not", "in", "all"})


class PerturbationSettings(Plugged):
    """A perturbation: its name, or its type with parameters, and a name of its own."""

    kind = "perturbation"
    own = ("type", "name")
    plugin: InstanceOf[Perturbation] = Field(repr=False)
    name: str = ""
    """What queries call it; its type, where nothing is given."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, str):
            data = {"type": data}
        if not isinstance(data, Mapping):
            return data
        given = data.get("type")
        if isinstance(given, str) and ":" in given:
            data = {"name": given.rpartition(":")[2], **data, "type": "function", "path": given}
        return {"name": str(data.get("type")).rpartition(".")[2], **data}

    @field_validator("name")
    @classmethod
    def _askable(cls, value: str) -> str:
        if not _NAME.match(value) or value.casefold() in _RESERVED or re.fullmatch(r"[Pp]\d+", value):
            raise ValueError("must be letters, digits, - and _, and none of the words of a query")
        return value


class RobustnessSettings(Part):
    """What is perturbed, how much is run, and the saved queries."""

    kind: Literal["image", "text", "table"]
    perturbations: tuple[PerturbationSettings, ...]
    every: Count = 10
    """Rounds between two tomographies."""
    relation: Literal["label", "own"] = "label"
    """Right by its label, or while it gives its own unperturbed answer."""
    tolerance: Number | None = None
    min_inputs: Count = 100
    max_inputs: Count = 1000
    max_order: Count | None = None
    ordered: bool = False
    half_width: Number = 0.03
    beyond_pairs: Annotated[int, BeforeValidator(whole), Field(ge=0)] | None = None
    """Tests of three and more perturbations that are run; null: as many as the space asks for."""
    quality: bool = True
    extractor: LocalPath | None = None
    """An ONNX file whose first output are the features that the quality of pictures is measured on; null: the model's
    own last hidden layer."""
    size: tuple[int, int] | None = None
    """Height and width of a picture that is kept flat."""
    span: tuple[float, float] | None = None
    """What black and white are, where the numbers do not say it."""
    queries: dict[str, str] = Field(default_factory=dict)
    """Asked of every tomography; each becomes a metric and a tag of the model version."""

    @model_validator(mode="before")
    @classmethod
    def _prefixed(cls, data: object, info: ValidationInfo) -> object:
        """``zoom`` of kind image is the plugin ``image.zoom``; the lexicon that a synonym names is read."""
        if not isinstance(data, Mapping) or not isinstance(data.get("perturbations"), list | tuple):
            return data
        kind, known = data.get("kind"), plugins.names("perturbation")
        entries = [_with_words(_full(entry, f"{kind}.", known), folder_of(info)) for entry in data["perturbations"]]
        return {**data, "perturbations": entries}

    @field_validator("queries")
    @classmethod
    def _metric_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _NAME.match(name):
                raise at_key(name, "a query's name has letters, digits, - and _ only, and begins with a letter")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not 0 < self.half_width < 0.5:
            raise at_key("half_width", "must lie between 0 and 0.5")
        if self.max_inputs < self.min_inputs:
            raise at_key("max_inputs", f"must be at least min_inputs, which is {self.min_inputs}")
        try:
            space = self.space
            space.check_runs()
        except InputError as exc:
            raise at_key("perturbations", str(exc)) from None
        for name, query in self.queries.items():
            try:
                parse(question(query), space.names, space.levels, self.quality)
            except InputError as exc:
                raise at_key("queries", f"{name}: {exc}") from None
        return self

    @property
    def space(self) -> Space:
        """The tests that the settings describe."""
        names = tuple(entry.name for entry in self.perturbations)
        return Space(names, ordered=self.ordered, max_order=self.max_order)

    @property
    def questions(self) -> dict[str, str]:
        """The saved queries, or where there are none those by name that fit the space."""
        if self.queries:
            return dict(self.queries)
        return dict(NAMED) if len(self.perturbations) >= 3 and self.space.highest >= 3 else {}


def _full(entry: object, prefix: str, known: list[str]) -> object:
    named = {"type": entry} if isinstance(entry, str) else entry
    if isinstance(named, Mapping) and isinstance(named.get("type"), str):
        kind = named["type"]
        for name in (prefix + kind, prefix + kind.replace("_", "-")):
            if kind not in known and name in known:
                return {**named, "type": name}
    return entry


def _with_words(entry: object, folder: Path) -> object:
    """``lexicon: words.txt`` of a synonym as the words of that file, one per line with its synonyms after it."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("lexicon"), str):
        return entry
    path = Path(absolute(entry["lexicon"], folder))
    try:
        words = parse_synonyms(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InputError) as exc:
        raise at_key("perturbations", f"the lexicon {path} cannot be read: {exc}") from exc
    return {**{key: value for key, value in entry.items() if key != "lexicon"}, "words": words}
