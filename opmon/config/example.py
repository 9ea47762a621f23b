"""The commented configuration that ``opmon init`` writes."""

from __future__ import annotations

from importlib.resources import files


def render_example() -> str:
    """The text of a complete, commented ``opmon.yaml``."""
    return files("opmon.config").joinpath("example.yaml").read_text(encoding="utf-8")
