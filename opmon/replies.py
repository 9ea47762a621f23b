"""What may be answered about an input, and how an answer is read, whichever way it comes.

A class by its name or another spelling of it, several classes, a number, or how good an output is. The text that is
kept is the same for answers that mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from opmon import label_sets, scales
from opmon.errors import InputError
from opmon.problems import Problem, traits
from opmon.scales import Scale
from opmon.spellings import AS_SPELT, Spellings
from opmon.values import canonical_class, canonical_number

UNNAMED = "'nan' stands for a value that is missing, unless 'classes' in the configuration names it"


def is_blank(said: object) -> bool:
    """Whether nothing is said: no value, no number, or no text.

    >>> [is_blank(said) for said in (None, float("nan"), " ", "nan", "None", 0)]
    [True, True, True, False, False, False]
    """
    return said is None or said != said or (isinstance(said, str) and not said.strip())


def is_nan(said: object) -> bool:
    """Whether a text is what programs write of a number that is missing, which may be a class all the same."""
    return isinstance(said, str) and said.strip().lower() == "nan"


@dataclass(frozen=True)
class Replies:
    """What may be answered."""

    problem: Problem = "classification"
    classes: Collection[str] | None = None
    """The names of the classes, in their order; None where nobody knows them yet, and of problems that have none."""
    spellings: Spellings = AS_SPELT
    scale: Scale | None = None
    """How outputs are judged."""

    @property
    def are_open(self) -> bool:
        """Whether nobody has said yet which classes there are: any word may be one."""
        return self.classes is None and traits(self.problem).of_classes

    @property
    def are_far_apart(self) -> bool:
        """Whether answers may be more or less far apart, as numbers and scores are, and not only the same or not."""
        return traits(self.problem).of_numbers or self.scale in ("score", "stars")

    @property
    def right(self) -> str | None:
        """The answer by which a model is right whatever it did; None where that depends on what it did."""
        return scales.PASS if self.scale == "pass_fail" else None

    def comparable(self, said: str | None) -> str | None:
        """An answer as measures of agreement take it: a number where answers are far apart."""
        return repr(scales.score_of(said)) if said is not None and self.are_far_apart else said

    def read(self, said: object) -> str:
        """The answer as it is kept; an error says what is asked for, and what came.

        >>> Replies("judged", scale="pass_fail").read("yes"), Replies("multilabel").read(["b", "a"])
        ('pass', '["a", "b"]')
        """
        return _READ[self.problem](self, said)

    def says_nothing(self, said: object) -> bool:
        """Whether a cell holds no answer: nothing at all, or ``nan`` where no class is called so.

        >>> Replies().says_nothing("NaN"), Replies(classes=["nan", "ok"]).says_nothing("nan")
        (True, False)
        """
        return is_blank(said) or (is_nan(said) and not (traits(self.problem).of_classes and self._names(said)))

    def _names(self, said: object) -> bool:
        """Whether a text is the name or a spelling of a class that is known."""
        return self.classes is not None and self.spellings.name(canonical_class(said)) in self.classes

    def hint(self, said: str) -> str:
        """Which class a text that is none may stand for, and how to say so.

        >>> Replies(classes=["007", "012"]).hint("7")
        " (did you mean '007'? Spreadsheets change names; classes: {'007': ['7'], …} in opmon.yaml takes both)"
        """
        near = self._loosely.get(_loose(said))
        if near is None:
            return ""
        spelt = f"classes: {{{near!r}: [{said!r}], …}} in opmon.yaml takes both"
        return f" (did you mean {near!r}? Spreadsheets change names; {spelt})"

    @cached_property
    def _loosely(self) -> Mapping[str, str]:
        """The classes by what is left of their names in other hands, where that is one class's alone."""
        found: dict[str, list[str]] = {}
        for name in self.classes or ():
            found.setdefault(_loose(name), []).append(name)
        return {loose: names[0] for loose, names in found.items() if len(names) == 1}

    def as_kept(self, answer: str | None) -> str | None:
        """An answer that was kept, None for a skip, as it is kept today: numbers were once kept as they were typed.

        >>> Replies("regression").as_kept("1_2.0"), Replies().as_kept("12.0")
        ('12', '12.0')
        """
        return canonical_number(answer) if answer is not None and traits(self.problem).of_numbers else answer

    def may_be(self, said: object) -> str | None:
        """The answer as it is kept; None where it is none."""
        try:
            return self.read(said)
        except InputError:
            return None


def _loose(name: str) -> str:
    """A name without its case, spaces around it and zeros before it."""
    text = name.strip().casefold()
    return text.lstrip("0") or text[-1:]


def _class(replies: Replies, said: object) -> str:
    try:
        name = replies.spellings.name(canonical_class(said))
    except InputError as exc:
        raise InputError(f"asks for a class; {exc}") from exc
    if replies.classes is None and is_nan(name):
        raise InputError(f"asks for a class; {UNNAMED}")
    if replies.classes is not None and name not in replies.classes:
        listed = list(replies.classes)
        have = ", ".join(listed[:12]) + (", …" if len(listed) > 12 else "")
        raise InputError(f"asks for one of the classes {have}; got {said!r}{replies.hint(name)}")
    return name


def _classes(replies: Replies, said: object) -> str:
    return label_sets.read(said, replies.classes, replies.spellings)


def _number(replies: Replies, said: object) -> str:
    text = str(said)
    try:
        if "_" not in text:
            return canonical_number(text)
    except ValueError:
        pass
    raise InputError(f"asks for a number such as 3.5; got {said!r}")


def _judgement(replies: Replies, said: object) -> str:
    return scales.read(str(said), replies.scale or "pass_fail")


_READ: Mapping[Problem, Callable[[Replies, object], str]] = {
    "classification": _class,
    "multilabel": _classes,
    "regression": _number,
    "judged": _judgement,
}
