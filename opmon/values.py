"""The canonical text of a class or a number, the same wherever it comes from: a model, a log, an annotator, a file.

A model answers the integer 3, the log kept 3.0, the annotator typed "3" and a CSV file holds "3.0": all of them are
the class ``"3"``. Pure: numbers and text in, text out.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opmon.errors import InputError

_EXACT = 2**53 - 1
"""Up to here each whole number is told from the next one where all numbers are fractions, as in a browser."""
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")


def canonical_class(value: Any) -> str:
    """The one text of a class.

    Whole numbers lose their fraction (``3.0`` and ``"3.0"`` are ``"3"``), truth values are ``"true"`` and ``"false"``
    (as are the texts ``"True"``, ``"FALSE"``), text loses the blanks around it and is composed (Unicode NFC), and bytes
    are UTF-8. A number with a leading zero stays as it is: ``"007"`` is a code, not seven.

    >>> [canonical_class(value) for value in (3, 3.0, "3", " 3.0 ", True, "cat", "007", 0.5)]
    ['3', '3', '3', '3', 'true', 'cat', '007', '0.5']
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating, Decimal, Fraction)):
        return _number(value)
    if isinstance(value, (bytes, bytearray, np.bytes_)):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError as exc:
            raise InputError(f"a class must be text, a number or a truth value; got the bytes {value!r}") from exc
    if isinstance(value, str):
        return _text(value)
    raise InputError(f"a class must be text, a number or a truth value; got {value!r} ({type(value).__name__})")


def canonical_number(value: Any) -> str:
    """The one text of a number: the shortest that says it. An error where a value is none.

    >>> [canonical_number(value) for value in ("12.0", " 12", 12, "1.20e1", "-0.0", 0.1, "1e16")]
    ['12', '12', '12', '12', '0', '0.1', '1e+16']
    """
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"a number must be finite; got {value!r}")
    return repr(number + 0.0).removesuffix(".0")


def as_browsers_read(value: Any) -> Any:
    """A value of JSON with the whole numbers as text that a browser would read with other digits, such as ids.

    >>> as_browsers_read({"user": 1152921504606846977, "ages": [3, 2**53], "is": True})
    {'user': '1152921504606846977', 'ages': [3, '9007199254740992'], 'is': True}
    """
    if isinstance(value, Mapping):
        return {name: as_browsers_read(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_browsers_read(inner) for inner in value]
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def canonical_classes(values: NDArray[Any]) -> NDArray[np.str_]:
    """:func:`canonical_class` of every value, computed once for each different one.

    >>> canonical_classes(np.array([1.0, 2.0, 1.0]))
    array(['1', '2', '1'], dtype='<U1')
    """
    values = np.asarray(values)
    if values.dtype.kind == "O":
        keys = [(type(value), value) for value in values.reshape(-1).tolist()]  # True == 1, yet another class
        known = {key: canonical_class(key[1]) for key in set(keys)}
        return np.array([known[key] for key in keys], dtype=np.str_)
    different, which = np.unique(values, return_inverse=True)
    names = np.array([canonical_class(value) for value in different], dtype=np.str_)
    return names[which.reshape(-1)]


def _number(value: Any) -> str:
    if not np.isfinite(float(value)):
        raise InputError(f"a class cannot be {value!r}; leave it empty where there is no answer")
    if value == int(value):
        return str(int(value))
    return str(value)


def _text(value: str) -> str:
    text = unicodedata.normalize("NFC", value.strip())
    if not text:
        raise InputError("a class cannot be empty text; leave it out where there is no answer")
    if text.lower() in ("true", "false"):
        return text.lower()
    whole = _WHOLE.fullmatch(text)
    if whole:
        return "0" if whole[1] == "-0" else whole[1]
    return text
