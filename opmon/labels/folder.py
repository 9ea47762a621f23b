"""The label provider ``files``: a folder in which tasks lie as files, to be filled in there or answered beside them."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from opmon.abc import LabelProvider, Pulled, Said
from opmon.errors import InputError, StateUnavailable
from opmon.labels.files import ENDINGS, SUFFIXES, Format, TaskRows, read_labels, task_rows, write_tasks
from opmon.labels.forgetting import without
from opmon.private import as_open_as_its_folder
from opmon.types import Guide, Task

log = logging.getLogger(__name__)

FINISHED = "finished"
_UNREAD = ""
"""Stands for the state of a file that the disk did not give: it is read again, also where it is saved no more."""


@dataclass(frozen=True)
class LabelFolder(LabelProvider):
    """Writes tasks to files below ``path/MONITOR``, and reads every label file there that is new or was changed.

    People fill in the files where they are, or put files of their own beside them: whatever ``opmon labels import``
    takes. A file is taken whole or not at all: one that is wrong is reported, and tried again once changed; one that
    may not be read, or not now, is tried again each time. A file of tasks that are all answered goes to the folder
    ``finished``; what is saved in it later is read all the same. ``annotator`` is who answers where a row does not say.
    A task that several people are to answer is in as many files, one for each of them, and they write their names into
    the column annotator. A further opinion is asked in a new file.
    """

    local_paths: ClassVar[tuple[str, ...]] = ("path",)

    path: str
    """The folder; each monitor has its own in it."""
    form: Format = "csv"
    """How the files are written."""
    annotator: str = "import"
    """Who answers where a row does not say."""
    _guide: Guide = field(default=Guide(), init=False, repr=False)

    def bind(self, monitor: str, guide: Guide) -> LabelFolder:
        bound = replace(self, path=str(Path(self.path) / monitor))
        object.__setattr__(bound, "_guide", guide)
        return bound

    def check(self) -> str:
        folder = self._made()
        return f"the folder {folder} holds {len(list(self._files()))} label files"

    def push(self, tasks: Sequence[Task]) -> None:
        folder = self._made()
        there, unanswered = Counter[str](), Counter[str]()
        rounds = tuple({_prefix(task.round) for task in tasks})
        for path in (*self._tasks(), *self._finished()):
            rows = _rows_of(path) if path.name.startswith(rounds) else None
            if rows is not None:
                there.update(rows.all)
                unanswered.update(rows.unanswered if path.parent == folder else ())
        lacking = {task.key: max(task.needs - there[task.key], not unanswered[task.key]) for task in tasks}
        for copy in range(max(lacking.values(), default=0)):  # one file for each annotator
            by_round: dict[int, list[Task]] = {}
            for task in tasks:
                if lacking[task.key] > copy:
                    by_round.setdefault(task.round, []).append(task)
            for number, some in by_round.items():
                self._write(some, self._free(folder, number, some))

    def _free(self, folder: Path, number: int, tasks: Sequence[Task]) -> Path:
        """Where no other file of these tasks is, or was put away."""
        mark = hashlib.sha256(" ".join(task.key for task in tasks).encode()).hexdigest()[:8]
        names = (f"{_prefix(number)}{mark}{again}{ENDINGS[self.form]}" for again in _again())
        return folder / next(
            name for name in names if not any((at / name).exists() for at in (folder, folder / FINISHED))
        )

    def _write(self, tasks: Sequence[Task], path: Path) -> None:
        write_tasks(tasks, path, self.form, {task.monitor: self._guide for task in tasks})
        for each in (path, path.with_suffix(".xml")):
            if each.exists():
                as_open_as_its_folder(each)

    def pull(self, since: str) -> Pulled:
        """Also what was saved in a file after it was put away; files there that are new to ``since`` are only noted."""
        before: Mapping[str, str] = json.loads(since) if since else {}
        said: list[Said] = []
        problems = [f"{path} is a link that leads out of its folder: it is not read" for path in self._links_out()]
        seen: dict[str, str] = {}
        for path in (*self._files(), *self._finished()):
            name = path.relative_to(self.path).as_posix()
            known = {before.get(name), before.get(path.name)} - {None}
            try:
                stat = path.stat()
                seen[name] = f"{stat.st_size}-{stat.st_mtime_ns}"
                if seen[name] not in known and (known or name == path.name or not since):
                    said += list(self._said(path, datetime.fromtimestamp(stat.st_mtime, UTC)))
            except (InputError, OSError) as exc:
                problems.append(str(exc))
                if isinstance(exc.__cause__ or exc, OSError):
                    seen[name] = _UNREAD
        return Pulled(said, json.dumps(seen), problems)

    def reconcile(self, open_keys: Collection[str]) -> Collection[str]:
        """Files that were taken away are being worked on: nothing counts as lost. One that cannot be read stays."""
        for path in self._tasks():
            rows = _rows_of(path)
            if rows is not None and rows.all and rows.all.keys().isdisjoint(open_keys):
                (path.parent / FINISHED).mkdir(exist_ok=True)
                for each in (path, path.with_suffix(".xml")):
                    if each.exists():
                        each.rename(path.parent / FINISHED / each.name)
        return open_keys

    def forget(self, keys: Collection[str]) -> Collection[str]:
        """Take the tasks out of the files that opmon wrote, the finished ones, too. One of which a part cannot be read
        may show any of them."""
        unread = False
        for path in (*self._tasks(), *self._finished()):
            try:
                without(path, keys)
            except (InputError, OSError) as exc:
                log.warning("whether tasks are shown there is not known: %s", exc)
                unread = True
        return () if unread else keys

    def _said(self, path: Path, changed: datetime) -> Iterator[Said]:
        for label in read_labels(path, annotator=self.annotator, monitor=Path(self.path).name).labels:
            yield Said(label.task_key, label.annotator, label.truth, label.at or changed, label.input_id)

    def _made(self) -> Path:
        folder = Path(self.path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise StateUnavailable(
                f"the folder {folder} for label files cannot be made: {exc.strerror or exc}"
            ) from exc
        return folder

    def _files(self) -> Iterator[Path]:
        """The label files that are there, those that programs write hidden left out, and links that lead elsewhere:
        whoever may write into the folder may not read by them what opmon may."""
        return (path for path in self._named() if path.is_file() and not self._leads_out(path))

    def _links_out(self) -> Iterator[Path]:
        return (path for path in self._named() if self._leads_out(path))

    def _finished(self) -> Iterator[Path]:
        """The files of tasks that were put away."""
        there = self._named(FINISHED)
        return (
            path for path in there if path.name.startswith(_prefix()) and path.is_file() and not self._leads_out(path)
        )

    def _named(self, below: str = "") -> Iterator[Path]:
        folder = Path(self.path, below)
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not path.name.startswith((".", "~")) and path.suffix.lower() in SUFFIXES:
                yield path

    def _leads_out(self, path: Path) -> bool:
        own = os.path.realpath(self.path)
        return not Path(os.path.realpath(path)).is_relative_to(own)

    def _tasks(self) -> Iterator[Path]:
        """The files that opmon wrote."""
        return (path for path in self._files() if path.name.startswith(_prefix()))


def _rows_of(path: Path) -> TaskRows | None:
    """The tasks in a file; None where it cannot be read, as while it is sent: whoever pulls is told."""
    try:
        return task_rows(path)
    except (InputError, OSError):
        return None


def _again() -> Iterator[str]:
    """What tells files of the same tasks apart."""
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def _prefix(number: int | None = None) -> str:
    return "tasks-round-" if number is None else f"tasks-round-{number}-"
