"""What annotators are told of the tasks of a monitor, wherever they answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opmon.problems import Problem
from opmon.scales import Scale


@dataclass(frozen=True, slots=True)
class Guide:
    """What is asked of annotators, in words; the tasks themselves are :class:`~opmon.types.Task`."""

    problem: Problem = "classification"
    """Whether a class is asked for, several, a number, or how good the model's output is."""
    classes: Mapping[str, str] = field(default_factory=dict)
    """What may be answered, each with its description or an empty text; empty where only the tasks know it."""
    guidelines: str = ""
    """How to answer, in Markdown."""
    unit: str | None = None
    """What a number is measured in."""
    needs: int = 1
    """How many annotators are to speak of each task."""
    picture: str | None = None
    """The field of the payload that is a picture, where the monitor names it."""
    text: str | None = None
    """The field of the payload that is the text to read, likewise."""
    scale: Scale | None = None
    """How outputs are judged, where that is asked for."""
    output: str | None = None
    """The field of the payload that is the output to judge."""

    def said_of(self, names: tuple[str, ...]) -> dict[str, str]:
        """The classes ``names``, or the guide's own where there are none, with their descriptions.

        >>> Guide(classes={"cat": "of any age", "dog": ""}).said_of(("dog", "cat"))
        {'dog': '', 'cat': 'of any age'}
        """
        return {name: self.classes.get(name, "") for name in names or tuple(self.classes)}
