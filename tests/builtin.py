"""What opmon itself brings: plugins of others may be installed beside it, and keep their own promises."""

from __future__ import annotations

from opmon import plugins


def built_in(kind: str) -> list[str]:
    """The names of opmon's own plugins of a kind."""
    return [name for name in plugins.names(kind) if plugins.load(kind, name).__module__.startswith("opmon.")]
