"""What the API takes and gives, as its OpenAPI description tells it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

MOST_TASKS = 50
"""Tasks that one call gives at most."""
MOST_ANSWERS = 500

Form = Literal["classes", "several", "text", "number", "pass_fail", "score", "stars"]
"""How an answer is given."""

Key = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\x21-\x7e]+$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=r"^[^\x00]*$")]

_MARK = "changes when the names of the monitor's classes do"


class Taken(BaseModel):
    """A body, whose unknown keys are errors."""

    model_config = ConfigDict(extra="forbid")


class Wrong(BaseModel):
    """What is wrong, and where."""

    at: str
    problem: str


class Failure(BaseModel):
    """Why a request was not done."""

    error: str
    problems: list[Wrong] = []


class Me(BaseModel):
    """Who is asking."""

    name: str
    role: Literal["annotator", "operator", "viewer"]
    monitors: list[str] | None = Field(description="null: all of them")
    by: Literal["token", "session", "proxy", "name"] = Field(description="how that is known")
    csrf: str = Field(description="the header x-csrf-token of what this session changes; empty where none is asked for")


class ProgressOut(BaseModel):
    """How far the labels of a monitor are.

    Annotators learn of their own part alone: what is settled would tell them which tasks test them.
    """

    open: int = Field(description="tasks that you may still be given; all that wait, where you only look")
    mine: int = Field(description="those that you have spoken of, in rounds that still wait for answers")
    due_at: datetime | None = Field(description="when the first of the rounds is estimated as it is")
    asked: int | None = Field(default=None, description="tasks of the rounds that wait; for operators and viewers")
    spoken: int | None = Field(default=None, description="those that are settled; for operators and viewers")


class ClassOut(BaseModel):
    """A class that may be answered."""

    name: str
    key: str | None = Field(description="the key of the page that answers with it")
    description: str | None = None
    examples: list[str] = Field(default=[], description="where pictures of it are")


class MonitorLine(BaseModel):
    """A monitor whose tasks may be answered."""

    name: str
    form: Form
    progress: ProgressOut


class Monitors(BaseModel):
    monitors: list[MonitorLine]


class MonitorOut(MonitorLine):
    """All that an annotator needs to know of a monitor."""

    problem: str = Field(description="what the model is for: classification, multilabel, regression or judged")
    unit: str | None = Field(description="of the numbers that are asked for")
    classes: list[ClassOut] = Field(description="what may be answered; empty where that is a number, or not known")
    classes_mark: str = Field(description=f"{_MARK}; tasks that are given with another one are of other classes")
    guidelines: str | None = Field(description="Markdown")
    guidelines_html: str | None
    shows_prediction: bool = Field(description="whether annotators see what the model answered")
    has_provider: bool = Field(description="whether tasks are handed out elsewhere too, by the label provider")


class FieldOut(BaseModel):
    """One part of an input, as an annotator is to see it."""

    name: str
    kind: Literal["picture", "text", "value"]
    value: JsonValue = Field(
        default=None,
        description="of a text or value; whole numbers from 2**53 on are text, for browsers would change their digits",
    )
    url: str | None = Field(default=None, description="of a picture")
    is_output: bool = Field(default=False, description="whether it is the model's output, which is judged")


class TaskOut(BaseModel):
    """One input to label. Whether its truth is known already is not told."""

    key: str = Field(description="names the task in answers")
    monitor: str
    round: int
    input_id: str
    fields: list[FieldOut]
    classes: list[str] | None = Field(default=None, description="where they are others than the monitor's")
    prediction: str | None = Field(default=None, description="where the monitor shows it")
    due_at: datetime | None = None


class Take(Taken):
    count: Annotated[int, Field(ge=1, le=MOST_TASKS)] = 1


class TakenOut(BaseModel):
    """Tasks that are yours for a while: first those that you have not answered yet, then others."""

    tasks: list[TaskOut]
    classes_mark: str = Field(description=f"{_MARK}: tasks without classes of their own are of those")
    progress: ProgressOut


class AnswerIn(Taken):
    """What somebody says of a task: the truth, or that they skip it."""

    key: Key
    truth: Text | None = None
    skip: bool = False
    why: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="the reason of a skip"
    )
    seconds: Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)] | None = Field(
        default=None, description="how long it took"
    )
    at: AwareDatetime | None = Field(
        default=None,
        description="when it was said, by the server's clock (the header opmon-now of its answers); "
        "sent again with it, it counts once",
    )

    @field_validator("at")
    @classmethod
    def _in_our_time(cls, value: datetime | None) -> datetime | None:
        if value is not None and not 2000 <= value.year < 9999:
            raise ValueError("must be a time of this century")
        return value

    @model_validator(mode="after")
    def _one_of_both(self) -> AnswerIn:
        if self.skip is (self.truth is not None):
            raise ValueError("say either truth or skip: true")
        return self


class Answers(Taken):
    answers: Annotated[list[AnswerIn], Field(min_length=1, max_length=MOST_ANSWERS)]


class RecordedOut(BaseModel):
    """What became of answers: all but the refused ones are safe now."""

    recorded: int = Field(description="with those that had been recorded before")
    refused: dict[str, str] = Field(description="by key, why an answer cannot be taken; sending it again is no use")


class GiveBack(Taken):
    keys: Annotated[list[Key], Field(min_length=1, max_length=MOST_ANSWERS)]


class GivenBack(BaseModel):
    given_back: int


class SaidOut(BaseModel):
    """Something that you said, with its task, so that it can be corrected."""

    task: TaskOut
    truth: str | None = Field(description="null: it was skipped")
    why: str | None
    at: datetime


class SaidList(BaseModel):
    said: list[SaidOut]
    classes_mark: str = Field(description=f"{_MARK}: tasks without classes of their own are of those")
