"""The process that computes measures of one's own: asked for one number at a time, it may be killed at any moment.

It is started by its path and needs numpy alone, beside the module that the measure is in. Requests and answers have
descriptors of their own; what the function prints goes where the service prints.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def main() -> None:
    """Answer until the other side is gone: a function and what is known of inputs, then weights for them."""
    asked, answers = Connection(int(sys.argv[1])), Connection(int(sys.argv[2]))
    for each in (asked, answers):
        os.set_inheritable(each.fileno(), False)
    _end_with(os.getppid())
    rows: tuple[Any, ...] = ()
    while True:
        try:
            path, told, weights = asked.recv()
        except EOFError:
            return
        rows = rows if told is None else told
        try:
            number = float(_function(path)(*rows, weights))
        except BaseException as exc:  # noqa: BLE001 - a function of the user's may fail in any way, and its words are wanted
            answers.send((None, f"{type(exc).__name__}: {exc}"))
        else:
            answers.send((number, ""))


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _end_with(parent: int) -> None:
    """Leave when the process that asks is gone, also in the middle of a computation."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
