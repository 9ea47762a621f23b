"""What makes a monitor hang: real sockets, commands, functions and a model that never come to an end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_HOOK = {"rules": [{"type": "accuracy_level", "threshold": 0.99}]}


@dataclass
class Silent:
    """A server on loopback that takes connections and says nothing, or a byte a second."""

    drips: bool = False
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self._socket.getsockname()[1]
        self._held: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._held.append(connection)
                if self.drips:
                    threading.Thread(target=self._drip, args=(connection,), daemon=True).start()

    def _drip(self, connection: socket.socket) -> None:
        with suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b" " * 10_000:
                connection.sendall(bytes([byte]))
                time.sleep(1)


Kind = Callable[[Silent, Path], Mapping[str, object]]
"""What makes a monitor hang: keys of its configuration."""


def _webhook(silent: Silent, folder: Path) -> Mapping[str, object]:
    url = f"http://127.0.0.1:{silent.port}/hook"
    return {**_HOOK, "actions": [{"type": "webhook", "url": url, "allow": ["127.0.0.1"], "timeout": 60}]}


def _command(silent: Silent, folder: Path) -> Mapping[str, object]:
    return {**_HOOK, "actions": [{"type": "command", "argv": ["sleep", "100000"], "on": ["opmon.alarm"]}]}


def _store(silent: Silent, folder: Path) -> Mapping[str, object]:
    return {"source": {"path": "s3://bucket/logs"}}


def _database(silent: Silent, folder: Path) -> Mapping[str, object]:
    address = f"postgresql+psycopg://me@127.0.0.1:{silent.port}/log"
    return {"source": {"type": "sql", "database": address, "table": "log", "cursor": "id"}}


def _model(silent: Silent, folder: Path) -> Mapping[str, object]:
    place = folder / "models" / "endless" / "1"
    place.mkdir(parents=True)
    (place / "model.onnx").write_bytes(endless_model())
    keys: dict[str, object] = {"model": "models:/endless/1", "scoring": {}, "inputs": {"features": ["x"]}}
    return {**keys, "columns": {"id": "id", "timestamp": "at"}}


def _provider(silent: Silent, folder: Path) -> Mapping[str, object]:
    provider = {"type": "label_studio", "url": f"http://127.0.0.1:{silent.port}", "token": "a"}
    return {"labels": {"provider": provider}}


def _judge(silent: Silent, folder: Path) -> Mapping[str, object]:
    return {"judge": {"type": "command", "command": ["sleep", "100000"]}, "sampler": {"type": "srs", "budget": 5}}


def _chat_judge(silent: Silent, folder: Path) -> Mapping[str, object]:
    return {"judge": {"type": "openai", "url": f"http://127.0.0.1:{silent.port}/v1", "model": "m"}}


def _measure(silent: Silent, folder: Path) -> Mapping[str, object]:
    own = "import time\n\n\ndef sleeps(truth, prediction, scores, weight):\n    time.sleep(100000)\n"
    own += "\n\ndef spins(truth, prediction, scores, weight):\n    while True:\n        pass\n"
    (folder / "own_measures.py").write_text(own)
    return {"measures": ["accuracy", {"function": {"path": "own_measures:sleeps"}}]}


def _spinning(silent: Silent, folder: Path) -> Mapping[str, object]:
    _measure(silent, folder)
    return {"measures": ["accuracy", {"function": {"path": "own_measures:spins"}}]}


KINDS: Mapping[str, Kind] = {
    "action: a webhook without an answer": _webhook,
    "action: a command that sleeps": _command,
    "source: a store without an answer": _store,
    "source: a store that drips": _store,
    "source: a database without an answer": _database,
    "model: computes without end": _model,
    "label provider: without an answer": _provider,
    "judge: a command that sleeps": _judge,
    "judge: a language model without an answer": _chat_judge,
    "measure: sleeps": _measure,
    "measure: computes without end": _spinning,
}


def endless_model() -> bytes:
    """A classifier in ONNX whose loop does not end."""
    from onnx import TensorProto, helper

    floats, ints, bools = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["goes_on"]), helper.make_node("Cos", ["value"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("number", ints, []),
            helper.make_tensor_value_info("going", bools, []),
            helper.make_tensor_value_info("value", floats, ["n", 1]),
        ],
        [helper.make_tensor_value_info("goes_on", bools, []), helper.make_tensor_value_info("next", floats, ["n", 1])],
    )
    nodes = [
        helper.make_node("Loop", ["most", "yes", "x"], ["looped"], body=body),
        helper.make_node("Sub", ["one", "looped"], ["rest"]),
        helper.make_node("Concat", ["looped", "rest"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["probabilities"], ["label"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "endless",
        [helper.make_tensor_value_info("x", floats, ["n", 1])],
        [
            helper.make_tensor_value_info("label", ints, ["n"]),
            helper.make_tensor_value_info("probabilities", floats, ["n", 2]),
        ],
        [
            helper.make_tensor("most", ints, [], [1 << 60]),
            helper.make_tensor("yes", bools, [], [True]),
            helper.make_tensor("one", floats, [1], [1.0]),
        ],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())
