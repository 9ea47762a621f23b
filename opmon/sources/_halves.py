"""Texts in JSON that hold half of a surrogate pair: JavaScript cuts an emoji in two, and writes the half as an escape.

JSON allows it, and no text in UTF-8 can hold it: Arrow's parser refuses the row, and no column can be made of it.
"""

from __future__ import annotations

import json

from opmon.types import Json


def with_whole_signs(value: Json, text: str) -> Json:
    r"""What was read from ``text``, with a question mark in the place of each half.

    >>> [with_whole_signs(json.loads(text), text) for text in (r'{"say": "hi \ud83d"}', r'["\ud83d\ude00"]')]
    [{'say': 'hi ?'}, ['😀']]
    """
    if "\\ud" not in text and "\\uD" not in text:
        return value
    whole: Json = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return whole
