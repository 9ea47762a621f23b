"""The base of all contracts of plugins."""

from __future__ import annotations

from typing import ClassVar


class Plugin:
    """The base of all kinds of plugins."""

    local_paths: ClassVar[tuple[str, ...]] = ()
    """The parameters that are files or folders on this machine: relative ones are taken from the configuration's
    folder."""
