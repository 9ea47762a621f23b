"""Which model version answered each input, as the log says it: 3, v3, @champion, models:/digits/3.

What a log says is looked up once, when its round opens, and kept in the round's plan: an alias may mean another version
a day later.
"""

from __future__ import annotations

from collections.abc import Iterable

from opmon.abc import Registry
from opmon.errors import NotFoundError, SourceError
from opmon.jobs.versions import UNNAMED
from opmon.registry.addresses import model_of, version_address
from opmon.types import ModelVersion

MOST = 100
"""So many versions cannot answer the inputs of one round: the column is another one."""


def versions_meant(said: Iterable[str], name: str, model: ModelVersion, registry: Registry) -> dict[str, str]:
    """By what the log says, the version that it means: itself where the registry does not know it (yet)."""
    texts = sorted({*said, UNNAMED})
    if len(texts) > MOST:
        raise SourceError(
            f"column {name!r} names more than {MOST} model versions, such as {', '.join(map(repr, texts[1:4]))}; "
            f"correct model_version in 'columns'"
        )
    return {text: _meant(text, name, model, registry) for text in texts}


def _meant(text: str, name: str, model: ModelVersion, registry: Registry) -> str:
    if text == UNNAMED:
        return model.version
    address = version_address(model.name, text)
    if address is None:
        return text
    if model_of(address) != model.name:
        raise SourceError(
            f"column {name!r} names {text!r}, and the monitor watches {model.name!r}: a log of several models needs a "
            f"source of its own for each. Correct 'source', or model_version in 'columns'"
        )
    if "@" not in address:
        return address.rpartition("/")[2]
    try:
        return registry.resolve(address).version
    except NotFoundError:
        return text
