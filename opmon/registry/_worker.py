"""The process that runs somebody's model: it reads batches, answers them, and can be killed at any moment.

It runs in the model's own environment, where opmon need not be installed: this file needs pyarrow and what is in
``_asked.py`` beside it, which is loaded by its path, for their folder must not be where the model looks for modules of
its own. What the model prints goes to standard error; requests and answers have descriptors of their own, which a
process that the model starts does not inherit.

Each message is a header of JSON and a body, an Arrow stream, each after its length in eight bytes.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

LENGTH = struct.Struct("<q")


def send(stream: BinaryIO, header: dict[str, object], body: bytes | memoryview = b"") -> None:
    """Write one message."""
    told = json.dumps(header).encode()
    stream.write(LENGTH.pack(len(told)))
    stream.write(told)
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Read one message; EOFError where the other side is gone."""
    return json.loads(_part(stream)), _part(stream)


def _part(stream: BinaryIO) -> bytes:
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    found = stream.read(count)
    if found is None or len(found) < count:
        raise EOFError
    return found


def _beside(name: str) -> ModuleType:
    """The file of this name beside this one, as a module that no import of the model's can mean."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"opmon_worker{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arrow(found: dict[str, Any], count: int, plain: Callable[[Any], Any]) -> memoryview:
    """The answer as an Arrow stream: ``labels`` or the ``codes`` ``of`` some, and ``scores`` as one list each."""
    import numpy as np
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in ("labels", "confidence"):
        if name in found:
            values = found[name]
            if len(values) != count:
                raise ValueError(f"it gives {len(values)} answers for {count} inputs")
            numbers = values.dtype.kind in "biuf"
            columns[name] = pa.array(values if numbers else [plain(value) for value in values.tolist()])
    if "codes" in found:
        codes = pa.array(found["codes"], pa.int32())
        columns["labels"] = pa.DictionaryArray.from_arrays(codes, pa.array(found["of"]))
    if "scores" in found:
        scores = np.ascontiguousarray(found["scores"], dtype=np.float64)
        if len(scores) != count:
            raise ValueError(f"it gives {len(scores)} answers for {count} inputs")
        columns["scores"] = pa.FixedSizeListArray.from_arrays(pa.array(scores.reshape(-1)), scores.shape[1])
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _limit(memory: int | None) -> None:
    """Let the process have so much memory beside what its libraries take."""
    if memory is not None:
        import resource

        have = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (have + memory, have + memory))


def _end_with(parent: int) -> None:
    """Leave when the process that asks is gone, also in the middle of an answer."""
    import threading
    import time

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _words(exc: BaseException) -> str:
    first = (str(exc).strip().splitlines() or [""])[0]
    return f"{type(exc).__name__}: {first[:300]}"


def main() -> None:
    """Serve the model in the folder that is named, until the other side is gone."""
    requests, answers = os.fdopen(int(sys.argv[1]), "rb"), os.fdopen(int(sys.argv[2]), "wb")
    for stream in (requests, answers):
        os.set_inheritable(stream.fileno(), False)
    folder, memory = sys.argv[3], int(sys.argv[4]) or None
    os.dup2(2, 1)  # what the model prints
    _end_with(os.getppid())
    try:
        import numpy  # noqa: F401
        import pandas  # noqa: F401
        import pyarrow as pa

        asked = _beside("_asked")
        model = asked.Model(folder)
        _limit(memory)
    except BaseException as exc:  # noqa: BLE001 - a model may end in any way, and its reason is wanted
        send(answers, {"error": _words(exc)})
        return
    send(answers, {"flavor": model.flavor, "classes": model.classes})
    while True:
        try:
            wanted, body = receive(requests)
        except EOFError:
            return
        try:
            with pa.ipc.open_stream(io.BytesIO(body)) as reader:
                rows = reader.read_all().combine_chunks()
            batch = rows.to_batches()[0]
            found = model.answer(batch, wanted)
            told, answer = {"classes": found.get("classes")}, _arrow(found, batch.num_rows, asked.plain)
        except MemoryError as exc:
            told, answer = {"error": _words(exc), "memory": True}, memoryview(b"")
        except Exception as exc:  # noqa: BLE001 - the model's own code may fail in any way
            told, answer = {"error": _words(exc)}, memoryview(b"")
        send(answers, told, answer)


if __name__ == "__main__":
    main()
