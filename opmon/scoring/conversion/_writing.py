"""How skl2onnx's own converters are let write other nodes than they would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope

Converter: TypeAlias = "Callable[[Scope, Operator, ModelComponentContainer], None]"


@contextmanager
def written_by(container: ModelComponentContainer, write: Callable[..., None]) -> Iterator[None]:
    """Have each node written by ``write``, which is called as the container's own ``add_node``."""
    container.add_node = write
    try:
        yield
    finally:
        del container.add_node  # the method of its class is seen again
