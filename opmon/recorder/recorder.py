"""``opmon.Recorder``: logs what a model is asked and what it answers, in the process that serves it."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from opmon.errors import InputError
from opmon.recorder import _process
from opmon.recorder._buffer import Buffer
from opmon.recorder._entries import Entry, Many, One, Record
from opmon.recorder._ids import new_id
from opmon.recorder._limits import Limits
from opmon.recorder._place import prepare
from opmon.recorder._rarely import Rarely
from opmon.recorder._reservoir import Sample
from opmon.recorder._writer import Writer
from opmon.recorder.counts import Stats

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
Function = TypeVar("Function", bound=Callable[..., object])


class Recorder:
    """Records inputs and predictions as Parquet files below ``uri``, for the source ``recorder``; never in the way.

    ``uri`` is a folder, or ``s3://``, ``gs://`` or ``abfs://`` with credentials as their own tools find them.
    :meth:`record` copies what it is given into a buffer and returns; a thread writes files of ``rows_per_file``
    records, ``bytes_per_file`` or ``seconds_per_file``, whichever is reached first. A file appears whole (written
    elsewhere, made durable, renamed) or not at all. What does not fit into the buffer because the disk is full or the
    store does not answer is counted by reason, and the next file tells the count. Files go into a folder for each day;
    ``name`` begins their names.

    What waits is written when the process ends, and at SIGTERM before what the process does then; that takes
    ``exit_seconds`` at the most, and longer only where the first record was made a moment ago. The signal is heard only
    where the recorder is made in the main thread, and it is none of the recorder's where it is ignored. A process that
    is killed (SIGKILL) loses what waits: at most the records of the last ``seconds_per_file`` and of the file that is
    being written, and never more than ``buffer_rows`` or ``buffer_bytes``. Each forked process writes files of its own
    and begins with an empty buffer; a fork waits for a file that is being written, 5 s at most.

    ``sample={"keep": 10000, "every": "1m", "by": "confidence"}`` keeps a sample of each window, in each process; ``by``
    is a function of inputs, prediction and scores that says how much a record matters. The column ``inclusion`` has the
    probability with which each record was kept, so that sums weighted with its inverse are unbiased; it is 1 without a
    sample. What a killed process loses then reaches back one window more.

    >>> import tempfile
    >>> with Recorder(tempfile.mkdtemp()) as recorder:
    ...     key = recorder.record({"age": 41, "income": 52.5}, prediction="good", scores=[0.9, 0.1])
    >>> recorder.stats().written
    1
    """

    def __init__(
        self,
        uri: str,
        *,
        name: str = "inputs",
        model_version: str | int | None = None,
        buffer_rows: int = 200_000,
        buffer_bytes: int = 128 << 20,
        rows_per_file: int = 50_000,
        bytes_per_file: int = 32 << 20,
        seconds_per_file: float = 60.0,
        exit_seconds: float = 5.0,
        sample: Mapping[str, object] | None = None,
    ) -> None:
        uri = str(uri)
        prepare(uri)
        if not _NAME.fullmatch(name):
            raise InputError(f"name is letters, digits and ._- and begins with a letter or digit; got {name!r}")
        self._uri, self._name = uri, name
        self.model_version = _version(model_version)
        self.exit_seconds = exit_seconds
        self._limits = Limits(buffer_rows, buffer_bytes, rows_per_file, bytes_per_file, seconds_per_file)
        self._sample = None if sample is None else Sample.of(sample)
        self._rarely = Rarely(_log)
        self._closed = False
        self.begin_anew()
        _process.guard(self)

    def record(
        self,
        inputs: object,
        prediction: object = None,
        scores: object = None,
        id: str | None = None,
        at: object = None,
        model_version: str | int | None = None,
    ) -> str:
        """Record one input, and return its id: the one given, or a new one that sorts by time.

        Give the id back with the answer: by it a later label finds the input. ``inputs`` is a mapping or an object
        with fields, whose names become columns, a list or an array (the column ``features``), text (``text``) or bytes
        (``image``). ``at`` is a datetime, ISO text or seconds since 1970; now if not given. Whatever is wrong with the
        values, nothing is raised: the record is counted as dropped, and a warning logged once a minute.
        """
        key = new_id() if id is None else str(id)
        version = self.model_version if model_version is None else _version(model_version)
        if self._sample is not None:
            self._draw(self._sample, (key, at, inputs, prediction, scores, version))
            return key
        try:
            self._buffer.add(One(key, at, inputs, prediction, scores, version))
        except Exception as exc:  # noqa: BLE001 - an answer must not fail because of its record
            self._refused(exc)
        if not self._writer.started:
            self._begin()
        return key

    def record_batch(
        self,
        inputs: object,
        predictions: object = None,
        scores: object = None,
        ids: Sequence[object] | None = None,
        at: object = None,
        model_version: str | int | None = None,
    ) -> list[str]:
        """Record many inputs at once, and return their ids.

        ``inputs`` is a DataFrame, an array whose first dimension counts the inputs, a list of what :meth:`record`
        takes, or a mapping of columns. A batch waits and is dropped as a whole; answers that are not one for each input
        are left out.
        """
        version = self.model_version if model_version is None else _version(model_version)
        try:
            batch = Many(inputs, predictions, scores, ids, at, version)
        except Exception as exc:  # noqa: BLE001 - an answer must not fail because of its record
            self._refused(exc, len(inputs) if isinstance(inputs, Sized) else 1)
            return [] if ids is None else [str(key) for key in ids]
        if self._sample is None:
            self.take(batch)
            return batch.keys
        for record in batch.singly():
            self._draw(self._sample, record)
        return batch.keys

    def predictions(self, function: Function) -> Function:
        """Decorate a function of one input, plain or async: what it is given and what it returns is recorded.

        A mapping with ``prediction`` (and perhaps ``scores``, ``id``, ``model_version``) says what is what; otherwise
        all it returns is the prediction.
        """
        from opmon.recorder._decorated import decorated

        return decorated(self, function)

    def take(self, entry: Entry) -> None:
        """Let an entry wait to be written."""
        if self._sample is None:
            self._buffer.add(entry)
        else:
            self._buffer.draw(self._sample.weight_of(entry), lambda: entry)
        if not self._writer.started:
            self._begin()

    def drop(self, reason: str, rows: int = 1) -> None:
        """Count inputs that could not even be taken."""
        self._buffer.drop(reason, rows)
        if not self._writer.started:
            self._begin()

    def flush(self, timeout: float = 10.0) -> bool:
        """Write all that waits now; whether that was done in ``timeout`` seconds. A sample's window ends with it."""
        return self._writer.flush(timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Take nothing more and write what waits; whether that was done in ``timeout`` seconds."""
        if self._closed:
            return True
        self._closed = self._buffer.closed = True
        done = self._writer.flush(timeout, last=True)
        _process.release(self)
        if not done:
            _log.warning("%d recorded inputs were not written to %s: %s", *self._left())
        return done

    def stats(self) -> Stats:
        """The counts of what was recorded, written and dropped in this process."""
        counts = self._buffer.counts()
        dropped = {reason: count for reason, count in counts.dropped.items() if count}
        return Stats(
            counts.recorded,
            counts.written,
            counts.passed_over,
            dropped,
            counts.waiting,
            self._buffer.bytes,
            self._writer.files,
            self._writer.trouble,
        )

    def locks(self) -> tuple[threading.Lock, threading.Lock]:
        """The locks that must be free when the process forks: that of files, and that of the buffer."""
        return self._writer.writing, self._buffer.lock

    def wait_for_arrow(self, timeout: float) -> None:
        """Wait while Arrow is being imported, which happens once, after the first record."""
        self._writer.wait_for_arrow(timeout)

    def hasten(self) -> None:
        """Write each record at once from now on: the process was told to end, and answers what it has begun."""
        self._buffer.hasten()

    def halt(self) -> None:
        """Keep whoever records from now on waiting, because the process ends by a signal."""
        self._buffer.halt()

    def begin_anew(self) -> None:
        """Begin with an empty buffer, as a writer of its own: at first, and in each forked process."""
        self._buffer = Buffer(self._limits, self._sample, closed=self._closed)
        self._writer = Writer(self._uri, self._name, uuid4().hex, self._buffer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _draw(self, sample: Sample, record: Record) -> None:
        """Draw a record (key, time, inputs, prediction, scores, version) into the sample."""
        try:
            self._buffer.draw(sample.weight(*record[2:5]), partial(One, *record))
        except Exception as exc:  # noqa: BLE001 - an answer must not fail because of its record
            self._refused(exc)
        if not self._writer.started:
            self._begin()

    def _begin(self) -> None:
        """The first record in this process."""
        _process.begin()
        self._writer.start()

    def _refused(self, exc: Exception, rows: int = 1) -> None:
        self.drop("unwritable", rows)
        self._rarely.warning("an input cannot be recorded: %s", exc)

    def _left(self) -> tuple[int, str, str | None]:
        return self.stats().waiting, self._uri, self._writer.trouble


def _version(given: str | int | None) -> str | None:
    return None if given is None else str(given)
