"""The registry's address of a model version, from the name that people and logs use."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[vV]?([0-9]+)")
_ADDRESS = re.compile(r"(?:models:/)?([^/@]+)(?:@[^/@]+|/[0-9]+)")


def version_address(model: str, text: str) -> str | None:
    """The address of the version of ``model`` that a text names: 3, v3, @alias or models:/name/3. None: no version.

    >>> [version_address("digits", text) for text in ("3", "v3", "@new", "digits/3", "models:/other@new", "sha256:ab")]
    ['models:/digits/3', 'models:/digits/3', 'models:/digits@new', 'models:/digits/3', 'models:/other@new', None]
    """
    number = _NUMBER.fullmatch(text)
    if number is not None:
        return f"models:/{model}/{int(number[1])}"
    if text.startswith("@"):
        return version_address(model, f"models:/{model}{text}") if len(text) > 1 else None
    address = _ADDRESS.fullmatch(text)
    if address is None or (address[1] != model and not text.startswith("models:/")):
        return None
    return f"models:/{text.removeprefix('models:/')}"


def model_of(address: str) -> str:
    """
    >>> model_of("models:/digits@champion"), model_of("models:/digits/3")
    ('digits', 'digits')
    """
    return re.split("[@/]", address.removeprefix("models:/"))[0]
