"""The address of a registered model: ``models:/name@alias`` or ``models:/name/3``."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_MODEL = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[0-9]+))\Z")


def _registered(value: str) -> str:
    if not _MODEL.match(value):
        raise ValueError("must be the address of a registered model: models:/name@alias or models:/name/3")
    return value


def name_in(address: str) -> str:
    """The registered model of an address, whichever version.

    >>> name_in("models:/fraud@champion")
    'fraud'
    """
    parts = _MODEL.match(address)
    assert parts is not None
    return parts["name"]


ModelAddress = Annotated[str, AfterValidator(_registered)]
