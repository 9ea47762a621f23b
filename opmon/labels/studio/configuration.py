"""The labelling configuration of a project: what annotators see, and what they may answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from xml.sax.saxutils import quoteattr

from opmon.problems import traits
from opmon.scales import FAIL, PASS, STARS, Scale
from opmon.types import Guide

MARK = "<!-- made by opmon, which keeps it up to date until this line is taken out -->"
"""Begins a configuration that opmon made: one without it is somebody's own, and stays as it is."""
ANSWER = "answer"
"""What the control is called in which annotators answer."""
ANSWERS = "answers"
"""What it is called where they may choose several classes."""
NONE = "none of them"
"""What they choose where none of the classes holds: Label Studio tells an answer of nothing from no answer by this."""
_MANY = 20
"""More classes than these are searched for by a part of their names."""
_PICTURE = 'zoom="true" zoomControl="true" brightnessControl="true" contrastControl="true" rotateControl="true"'
_KEY = re.compile(r"[0-9a-z]\Z")
_SHOWN = re.compile(r'value="\$(\w+)"')


def labelling_configuration(shown: Collection[str], guide: Guide, classes: Mapping[str, str]) -> str:
    """The configuration that shows these keys of ``data``; ``classes`` may be answered, each with its description."""
    pictures = sorted(key for key in shown if key.startswith("picture"))
    objects = [f"<Image name={quoteattr(key)} value={quoteattr(f'${key}')} {_PICTURE}/>" for key in pictures]
    if "text" in shown:
        objects.append('<Text name="text" value="$text"/>')
    if "row" in shown:
        objects.append('<Table name="row" value="$row"/>')
    if "lines" in shown:
        objects.append('<Header size="5" value="$lines" style="white-space: pre-wrap; font-weight: normal"/>')
    if "output" in shown:
        objects += ['<Header size="4" value="The model\'s output"/>', '<Text name="output" value="$output"/>']
    about = next(key for key in ("output", *pictures, "text", "row") if key in shown)
    seen, answered = "\n      ".join(objects), "\n      ".join(_answer(about, guide, classes))
    return f"""{MARK}
<View>
  <View style="display: flex; gap: 24px; align-items: flex-start">
    <View style="flex: 1 1 60%; min-width: 0">
      {seen}
    </View>
    <View style="flex: 1 1 30%; min-width: 12em">
      {answered}
    </View>
  </View>
</View>
"""


def shown_in(configuration: str) -> frozenset[str]:
    """The keys of ``data`` that a configuration shows.

    >>> sorted(shown_in(labelling_configuration({"picture", "lines"}, Guide(), {"cat": "", "dog": ""})))
    ['lines', 'picture']
    """
    return frozenset(_SHOWN.findall(configuration))


def is_ours(configuration: str) -> bool:
    """Whether opmon made the configuration, or nobody has made one yet."""
    plain = re.sub(r"\s", "", configuration)
    return configuration.lstrip().startswith(MARK) or plain in ("", "<View></View>", "<View/>")


def _answer(about: str, guide: Guide, classes: Mapping[str, str]) -> list[str]:
    to = f'name="{ANSWER}" toName={quoteattr(about)} required="true"'
    if traits(guide.problem).of_numbers:
        unit = "" if guide.unit is None else f" in {guide.unit}"
        return [f'<Header size="5" value={quoteattr(f"The number{unit}")}/>', f'<Number {to} step="any"/>']
    if not traits(guide.problem).compares:
        return _judgement(to, guide.scale or "pass_fail")
    several = not traits(guide.problem).one_class
    if several:
        to, classes = to.replace(f'name="{ANSWER}"', f'name="{ANSWERS}"', 1), {**classes, NONE: ""}
    if len(classes) > _MANY:
        listed = [f"  <Choice value={quoteattr(name)} hint={quoteattr(told)}/>" for name, told in classes.items()]
        most = "" if several else 'maxUsages="1" '
        return [f'<Taxonomy {to} {most}placeholder="search">', *listed, "</Taxonomy>"]
    keys = all(_KEY.match(name) for name in classes)
    choices = [f"  {_choice(name, told, keys)}" for name, told in classes.items()]
    kind = "multiple" if several else "single-radio"
    return [f'<Choices {to} choice="{kind}" showInLine="false">', *choices, "</Choices>"]


def _judgement(to: str, scale: Scale) -> list[str]:
    """How good the output is."""
    if scale == "stars":
        return [f'<Rating {to} maxRating="{STARS}"/>']
    if scale == "score":
        title = '<Header size="5" value="The score, from 0 to 1"/>'
        return [title, f'<Number {to} min="0" max="1" step="any"/>']
    choices = [f'  <Choice value="{word}" hotkey="{word[0]}"/>' for word in (PASS, FAIL)]
    return [f'<Choices {to} choice="single-radio" showInLine="true">', *choices, "</Choices>"]


def _choice(name: str, described: str, keys: bool) -> str:
    """A class with its description behind it; the answer is its name. Where all classes are single signs (``keys``),
    each has its own key: by themselves the first ones would be 1, 2, 3, whatever they are called."""
    key = f" hotkey={quoteattr(name)}" if keys else ""
    if not described:
        return f"<Choice value={quoteattr(name)}{key}/>"
    return f"<Choice value={quoteattr(f'{name}: {described}')} alias={quoteattr(name)}{key}/>"
