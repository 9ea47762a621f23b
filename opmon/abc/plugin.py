"""What all kinds of plugins share."""

from __future__ import annotations

from typing import ClassVar


class Plugin:
    """What all kinds of plugins share."""

    local_paths: ClassVar[tuple[str, ...]] = ()
    """The parameters that are files or folders on this machine: relative ones are taken from the configuration's
    folder."""
