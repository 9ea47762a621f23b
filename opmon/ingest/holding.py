"""Whether the endpoint's journal still holds an input of which rows are to be made."""

from __future__ import annotations

import json

from opmon.config import Settings
from opmon.durations import show_duration
from opmon.ingest.endpoint import JOURNAL, streams_of


def held_until_rows(settings: Settings, monitor: str, input_id: str) -> list[str]:
    """Where the journal holds an input of a monitor, in words: its segments go by themselves soon after."""
    if monitor not in streams_of(settings):
        return []
    stream, wanted = json.dumps(monitor).encode(), json.dumps(input_id, ensure_ascii=False).encode()
    paths = sorted((settings.state / "ingest" / JOURNAL).glob("*.log")) + sorted(
        (settings.state / "ingest" / JOURNAL).glob("*.read")
    )
    holding = [path for path in paths if any(stream in line and wanted in line for line in path.open("rb"))]
    wait = show_duration(settings.ingest.every + settings.ingest.settle)
    return [f"{path}: events are kept for about {wait}; run this again then" for path in holding]
