"""One class, many spellings: a log says ``1``, the annotator ``defaulted``, the model ``default``.

Pure: names in, names out. Every spelling is the canonical text of :mod:`opmon.values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError
from opmon.values import canonical_class

Classes = Sequence[object] | Mapping[str, Sequence[object]]
"""The names of classes in an order, or each of them with its spellings."""


@dataclass(frozen=True)
class Spellings:
    """The name that each spelling of a class stands for; a text that is no spelling is its own name.

    >>> spelt = Spellings.of({"paid": [0], "default": [1, "DEFAULTED"]})
    >>> spelt.name("1"), spelt.name("paid"), spelt.name("lost")
    ('default', 'paid', 'lost')
    """

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, classes: Mapping[str, Iterable[object]]) -> Spellings:
        """From the spellings of each class; an error where one stands for two classes."""
        names = {canonical_class(name): canonical_class(name) for name in classes}
        for name, spellings in classes.items():
            for text in map(canonical_class, spellings):
                other = names.setdefault(text, canonical_class(name))
                if other != canonical_class(name):
                    raise InputError(f"{text!r} cannot stand for both {other!r} and {name!r}")
        return cls({text: name for text, name in names.items() if text != name})

    def __bool__(self) -> bool:
        return bool(self.names)

    def name(self, text: str) -> str:
        """The class that a text stands for."""
        return self.names.get(text, text)

    def named(self, texts: NDArray[np.str_]) -> NDArray[np.str_]:
        """:meth:`name` of every text."""
        if not self.names or not len(texts):
            return texts
        different, which = np.unique(texts, return_inverse=True)
        return np.array([self.name(text) for text in different.tolist()], dtype=np.str_)[which.reshape(-1)]

    def all_named(self, texts: Sequence[str], classes: Sequence[str]) -> tuple[str, ...] | None:
        """What the texts stand for where each is another one of the classes; None where they are not."""
        names = tuple(map(self.name, texts))
        return names if set(names) == set(classes) and len(names) == len(classes) else None


AS_SPELT = Spellings()
"""Every class is called by its name everywhere."""
