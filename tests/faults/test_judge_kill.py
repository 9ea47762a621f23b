"""Kill ``opmon run`` while it asks a judge that costs money: what was answered is never paid for again."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from opmon.estimators.proxies import Proxy
from opmon.store import draws, rounds
from tests.forked import forks
from tests.judges.server import Reply, serving

AT_ONCE, KILLED_AT = 3, (50, 130)


def _run(config: str) -> None:
    from opmon.cli import main

    main(["-q", "run", "--json", "--config", config])


def test_killed_twice_it_pays_for_no_answer_twice(workbench: Any, sqlite: str) -> None:
    workbench.write_window()
    process: list[Any] = []
    killed: list[int] = []

    def reply(number: int, body: dict[str, Any]) -> Reply:
        if len(killed) < len(KILLED_AT) and number >= KILLED_AT[len(killed)]:
            killed.append(number)
            os.kill(process[-1].pid, signal.SIGKILL)
        return Reply(content=json.dumps({"answer": "7"}))

    with serving(reply) as chat:
        judge = {"type": "openai", "url": chat.url, "model": "small", "at_once": AT_ONCE}
        changes: dict[str, Any] = {"judge": judge, "sampler": {"type": "srs", "budget": 40}}
        config: Path = workbench.write_yaml(sqlite, **changes)
        monitor = workbench.monitor(sqlite, **changes)
        for _ in range(len(KILLED_AT) + 1):
            process.append(forks().Process(target=_run, args=(str(config),)))
            process[-1].start()
            process[-1].join()
    assert [each.exitcode for each in process] == [-signal.SIGKILL] * 2 + [0]
    with monitor.store.read() as connection:
        round_ = rounds.get(connection, workbench.name, 1)
    assert round_.state == "labelling"
    assert Proxy.of_draw(draws.unpack_draw(round_.draw or b"")) is not None
    asked = Counter(body["messages"][1]["content"] for body in chat.requests)
    assert len(asked) == 200
    again = sum(count - 1 for count in asked.values())
    assert again <= len(KILLED_AT) * AT_ONCE  # those that were on their way when the process was killed
