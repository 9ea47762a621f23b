"""The source ``mlflow_traces``."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from opmon.errors import InputError, SourceError
from opmon.registry.logged import LoggedTrace
from opmon.sources._position import parse
from opmon.sources._since import Since, settling, since_text
from opmon.sources.files import Files
from opmon.sources.mlflow.mirror import Mirror, folder_for, is_read, status_of
from opmon.sources.mlflow.mirrored import MARK, Mirrored, began, in_copies, in_copy, logged
from opmon.sources.mlflow.sketch import MOST, Sketch
from opmon.types import Slice

_log = logging.getLogger(__name__)

_WINDOW = timedelta(minutes=5)
_OVERLAP = timedelta(hours=1)
"""So far back of what was read late traces are looked for."""
_CUT_SHORT = re.compile(r'"(?:\[|array\()[^"]*\.\.\.[^"]*"|\.\.\.[^"]*\[\d+ rows x \d+ columns\]"')
"""An array or a data frame that was written as text, with the middle left out."""
_PART = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d)(?:\.late/([\w-]+))?\.jsonl")
_FORM = "%Y-%m-%dT%H-%M"


@dataclass(frozen=True)
class MlflowTraces(Mirrored):
    """The traces of an MLflow experiment that went well: one input each, with `id`, `timestamp` (when it ended),
    `request` and `response`, both text that holds JSON: name columns in it such as `request.x.age`.

    Traces are read in windows of five minutes by when they ended, once a window is `settle` old; those that arrive
    later are still read within an hour; where another machine goes on, up to eight of each window. Arrays of NumPy and
    data frames are logged as text with the middle left out (log `x.tolist()`): such a request is an input with nothing
    in it, which is counted as unscorable. Traces are a slow way to log many inputs (some hundred a second); a run with
    a Parquet artifact for each batch is a better one.
    """

    experiment: str
    """The experiment's name."""
    tracking_uri: str | None = field(default=None, repr=False)
    """The server; where nothing is said, MLFLOW_TRACKING_URI."""
    since: Since = None
    """A date, a time, or now: windows before it are not read. It holds for a monitor that has not read anything."""
    settle: str = "5m"
    """How long after their end traces may arrive: they are sent in the background."""

    def __post_init__(self) -> None:
        if not self.experiment.strip():
            raise InputError("experiment is empty; give the name of the experiment that traces are logged to")
        settling(self.settle)
        object.__setattr__(self, "since", since_text(self.since))

    @property
    def answers(self) -> tuple[str, ...]:
        return ("response",)

    def pending(self, positions: Mapping[str, str], limit: int | None = None) -> list[Slice]:
        """The traces of whole windows that were not read, oldest window first."""
        mirror, known = self._mirror(), in_copies(positions)
        mirror.forget(known)
        first = _ms(_begin_of(began(positions) // 1_000_000))
        reached = [_window_of(part) for part in known]
        since = max(first, _ms(max(reached) - _OVERLAP) if reached else 0)
        until = _ms(_begin_of(_ms(datetime.now(UTC) - settling(self.settle))))
        windows: dict[datetime, list[LoggedTrace]] = defaultdict(list)
        for trace in mirror.logged.traces(self.experiment, since, until):
            windows[_begin_of(trace.ended_ms)].append(trace)
        for window, traces in windows.items():
            part = f"{window.strftime(_FORM)}.jsonl"
            seen = _copied(mirror.folder, part, positions.get(part), traces)
            for late in (trace for trace in traces if seen is not None and trace.trace_id not in seen):
                _write(mirror.folder, f"{window.strftime(_FORM)}.late/{late.trace_id}.jsonl", [late])
        hidden = mirror.hidden(first * 1_000_000 + 1, until * 1_000_000)
        found = self._files(mirror).pending(hidden | known, limit)
        return [_told(mirror.folder, piece, positions.get(piece.part)) for piece in found]

    def _mirror(self) -> Mirror:
        server = logged(self.tracking_uri)
        return Mirror(server, folder_for(server.where, f"traces of {self.experiment}"))

    def _files(self, mirror: Mirror) -> Files:
        types = dict.fromkeys(("id", "timestamp", "request", "response"), "string")
        return Files(str(mirror.folder), format="jsonl", types=types, settle_seconds=0.001)

    def copies_of(self, slices: Sequence[Slice]) -> Files:
        """The copies of what the slices need, fetched again where they are gone."""
        mirror = self._mirror()
        for part, stop in {piece.part: piece.stop for piece in slices}.items():
            if _is_there(mirror.folder, part, stop):
                continue
            begin = _ms(_window_of(part))
            traces = [*mirror.logged.traces(self.experiment, begin, begin + int(_WINDOW.total_seconds() * 1000))]
            late = _matched(part)[2]
            if late is not None:
                _write(mirror.folder, part, [trace for trace in traces if trace.trace_id == late])
            elif _copied(mirror.folder, part, stop, traces) is None:
                _write(mirror.folder, part, traces)
        return self._files(mirror)


def _copied(folder: Path, part: str, position: str | None, traces: Sequence[LoggedTrace]) -> Collection[str] | None:
    """Let there be the copy of a window as it was when it was first looked at, and give the ids in it; None where all
    of it was read and nobody knows any more what that was."""
    if _is_there(folder, part, position):
        return _ids_in(folder / part)
    sketch = _sketch(position)
    late = frozenset() if sketch is None else sketch.added({trace.trace_id for trace in traces})
    if late is None:
        _log.warning(
            "the copy of the traces of %s is gone, and what came late is not read: it is more than %d traces, "
            "or others were deleted",
            part,
            MOST,
        )
    if is_read(None if position is None else in_copy(position), part) and (sketch is None or late is None):
        return None
    first = [trace for trace in traces if trace.trace_id not in (late or ())]
    _write(folder, part, first)
    return {trace.trace_id for trace in first}


def _is_there(folder: Path, part: str, position: str | None) -> bool:
    """Whether there is a copy, and the one in which a position was reached: another monitor may have looked later."""
    status = status_of(folder / part)
    if status is None:
        return False
    return _sketch(position) is None or status.st_size == parse(in_copy(position or ""), part).size


def _told(folder: Path, piece: Slice, before: str | None) -> Slice:
    """The slice whose position tells what is in the copy, so that another machine can make the same one."""
    if _matched(piece.part)[2] is not None:
        return piece
    _, mark, sketch = (before or "").partition(MARK)
    told = sketch if mark else str(Sketch.of(_ids_in(folder / piece.part)))
    return replace(piece, start=before or piece.start, stop=f"{piece.stop}{MARK}{told}")


def _sketch(position: str | None) -> Sketch | None:
    return Sketch.parse((position or "").partition(MARK)[2])


def _ids_in(copy: Path) -> set[str]:
    return {json.loads(line)["id"] for line in copy.read_bytes().splitlines()}


def _write(folder: Path, part: str, traces: Sequence[LoggedTrace]) -> None:
    """The copy of a window's traces, whole at once, and always the same."""
    rows = sorted({trace.trace_id: trace for trace in traces}.values(), key=lambda one: (one.ended_ms, one.trace_id))
    text = "".join(f"{json.dumps(_row(trace))}\n" for trace in rows)
    target, ended = folder / part, _ms(_window_of(part) + _WINDOW) * 1_000_000
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as place:
        written = Path(place, "traces")
        written.write_text(text, encoding="utf-8")
        os.utime(written, ns=(ended, ended))
        written.replace(target)


def _row(trace: LoggedTrace) -> Mapping[str, str | None]:
    whole = trace.request is not None and not _CUT_SHORT.search(trace.request)
    return {
        "id": trace.trace_id,
        "timestamp": datetime.fromtimestamp(trace.ended_ms / 1000, UTC).isoformat(),
        "request": trace.request if whole else None,
        "response": trace.response,
    }


def _begin_of(moment_ms: int) -> datetime:
    """When the window of a moment begins."""
    width = int(_WINDOW.total_seconds())
    return datetime.fromtimestamp(moment_ms // 1000 // width * width, UTC)


def _window_of(part: str) -> datetime:
    return datetime.strptime(_matched(part)[1], _FORM).replace(tzinfo=UTC)


def _matched(part: str) -> re.Match[str]:
    found = _PART.fullmatch(part)
    if found is None:
        raise SourceError(
            f"{part!r} is no window of traces. Was the monitor's source changed? Give the monitor a new name."
        )
    return found


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
