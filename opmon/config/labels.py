"""What people are asked, how often, by whom and for how long."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from opmon.config.fields import Count, Duration, LocalPath, Number, absolute, folder_of
from opmon.config.kinds import ProviderSettings
from opmon.config.part import Part, at_key
from opmon.scales import Scale

log = logging.getLogger(__name__)

Share = Annotated[Number, Field(ge=0, le=1)]
LONGEST_GUIDE = 100_000


class OverlapSettings(Part):
    """How many annotators speak of a task: ``answers`` of all, or of a random ``share``; or ``of`` apparent failures.

    Of failures: where an answer makes the model wrong, a second annotator is asked, who does not know it, and a third
    where the two differ. A random ``share`` beside it tells how often wrong answers agree with the model.
    """

    answers: Annotated[Count, Field(le=20)] = 2
    share: Share | None = None
    """None: all, or, with ``of: failures``, no others."""
    of: Literal["all", "failures"] = "all"

    @model_validator(mode="after")
    def _several(self) -> Self:
        if self.of == "failures" and self.answers < 2:
            raise at_key("answers", "must be at least 2: failures are asked of a second annotator")
        return self

    @property
    def chosen(self) -> float:
        """The share of tasks that several annotators speak of whatever is said."""
        return self.share if self.share is not None else float(self.of == "all")

    @property
    def needs(self) -> int:
        """How many annotators are to speak of every task."""
        return self.answers if self.chosen == 1 else 1

    @property
    def confirm(self) -> int:
        """How many annotators are to answer an apparent failure; 0: no more than others."""
        return self.answers if self.of == "failures" else 0


class GoldSettings(Part):
    """Inputs whose truth is known, slipped in among the tasks to measure annotators by."""

    file: LocalPath
    """JSONL or CSV, as label files are: input_id, label, and what annotators see."""
    share: Annotated[Number, Field(gt=0, le=0.5)] = 0.05
    """So many of all tasks that an annotator meets."""


class ClassGuide(Part):
    """What annotators are told of a class."""

    text: str = ""
    examples: tuple[LocalPath, ...] = ()
    """Pictures of it."""


class AdjudicationSettings(Part):
    """Whose answer counts where annotators differ: the first of these ``expert`` s who answered."""

    expert: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("expert"), str):
            return {**value, "expert": (value["expert"],)}
        return value


def _overlap(value: object) -> object:
    return {"answers": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _class_guide(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


def _guide(value: object, info: ValidationInfo) -> object:
    """The file that is named, from the root on; Markdown itself as it is."""
    if isinstance(value, str) and "\n" not in value and value.strip().lower().endswith((".md", ".markdown", ".txt")):
        return absolute(value.strip(), folder_of(info))
    return value


class LabelSettings(Part):
    """Where the tasks go, who speaks of them and how often, what annotators see, how long answers are waited for."""

    provider: ProviderSettings | None = None
    """None: they wait for ``opmon labels export``."""
    annotators: Literal["asked", "none"] = "asked"
    """``none``: nobody is asked, and only truth that arrives by itself answers."""
    wait_for_truth: Duration | None = None
    """How long after their round's inputs tasks wait for truth that arrives by itself, before annotators are asked."""
    max_wait: Duration = Field(default="7d")  # type: ignore[assignment]
    max_open: Count | None = None
    """While so many tasks are open no round is opened: inputs gather, and the next round is of all of them."""
    urgent: bool = False
    """Whether annotators meet the tasks of new rounds before those of others."""
    show_prediction: bool = False
    overlap: Annotated[OverlapSettings, BeforeValidator(_overlap)] = OverlapSettings(answers=1)
    """How many annotators speak of a task: ``2``, ``{answers: 2, share: 0.2}``, ``{answers: 2, of: failures}``."""
    adjudication: Literal["majority", "weighted", "mean", "median"] | AdjudicationSettings = "majority"
    """Which answer counts where annotators differ; of scores the mean unless something else is said."""
    scale: Scale | None = None
    """How outputs are judged with ``problem: judged``: ``pass_fail``, which it is by itself, ``score`` (from 0 to 1) or
    ``stars`` (one to five)."""
    gold: GoldSettings | None = None
    lease: Duration = Field(default="15m")  # type: ignore[assignment]
    """How long nobody else is given a task that an annotator has taken."""
    guidelines: Annotated[str, BeforeValidator(_guide), Field(max_length=LONGEST_GUIDE)] = ""
    """A Markdown file, or Markdown."""
    classes: dict[str, Annotated[ClassGuide, BeforeValidator(_class_guide)]] = Field(default={})
    """What annotators are told of each class."""

    @property
    def guidelines_text(self) -> str:
        """The guidelines as they are now. A file that cannot be read is told by "opmon check", and stops no round."""
        if self.guidelines_file is None:
            return self.guidelines
        try:
            return self.guidelines_file.read_text("utf-8")[:LONGEST_GUIDE]
        except (OSError, UnicodeDecodeError) as exc:
            log.warning("the guidelines %s cannot be read: %s", self.guidelines_file, exc)
            return ""

    @property
    def experts(self) -> tuple[str, ...] | None:
        """Whose answer counts, the first who answered; None where that is not the way."""
        return self.adjudication.expert if isinstance(self.adjudication, AdjudicationSettings) else None

    @property
    def decides(self) -> Literal["weighted", "expert", "mean", "median"] | None:
        """What decides where annotators differ, as far as it is said; None: the majority."""
        if isinstance(self.adjudication, AdjudicationSettings):
            return "expert"
        return None if self.adjudication == "majority" else self.adjudication

    @property
    def guidelines_file(self) -> Path | None:
        """The file that the guidelines are in; None where they are here."""
        is_file = "\n" not in self.guidelines and self.guidelines.lower().endswith((".md", ".markdown", ".txt"))
        return Path(self.guidelines) if is_file else None
