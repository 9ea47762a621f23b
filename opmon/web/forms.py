"""What a browser sends from a form, read without trust."""

from __future__ import annotations

from urllib.parse import parse_qs

FORM = "opmon.form"
"""Where a request keeps the fields of its form, once they are read."""


def fields_of(body: bytes) -> dict[str, str]:
    """The fields of a form, the last of each name.

    >>> fields_of(b"name=Ann+Lee&next=%2Flabel&next=%2F")
    {'name': 'Ann Lee', 'next': '/'}
    """
    try:
        found = parse_qs(body.decode("utf-8"), max_num_fields=20, keep_blank_values=True)
    except ValueError:
        return {}
    return {name: values[-1].replace("\0", "") for name, values in found.items()}
