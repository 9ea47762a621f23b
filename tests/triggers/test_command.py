from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from opmon.abc import Action
from opmon.errors import DeliveryError, InputError
from opmon.plugins import make
from opmon.triggers._environment import variables
from opmon.triggers.command import Command


def python(script: str, *arguments: str, **more: Any) -> Command:
    return Command((sys.executable, "-c", script, *arguments), **more)


def test_is_an_action_behind_the_entry_point() -> None:
    assert isinstance(make("action", "command", {"argv": ["true"]}), Action)


def test_the_program_gets_the_event_in_its_environment(event, tmp_path: Path) -> None:
    script = "import json,os,sys; json.dump(dict(os.environ), open(sys.argv[1],'w'))"
    python(script, str(tmp_path / "seen")).act(event)
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["OPMON_EVENT_ID"] == event["id"]
    assert seen["OPMON_MODEL_URI"] == "models:/digits/3"
    assert seen["OPMON_ACCURACY_LOW"] == "0.8"
    assert json.loads(seen["OPMON_EVENT"]) == event


def test_a_bound_that_there_is_none_of_is_null(event) -> None:
    told = variables({**event, "estimate": {**event["estimate"], "high": math.inf}})
    assert json.loads(told["OPMON_EVENT"], parse_constant=pytest.fail)["estimate"]["high"] is None


def test_opmons_own_environment_is_kept_from_it_unless_named(event, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "secret")
    monkeypatch.setenv("REGION", "eu")
    script = "import os,sys; open(sys.argv[1],'w').write(str(os.environ.get('DB_PASSWORD')) + os.environ['REGION'])"
    python(script, str(tmp_path / "seen"), pass_environment=("REGION",)).act(event)
    assert (tmp_path / "seen").read_text() == "Noneeu"


def test_there_is_no_shell(event, tmp_path: Path) -> None:
    hostile = {**event, "message": f"$(touch {tmp_path}/a); touch {tmp_path}/b", "rule": f"`touch {tmp_path}/c`"}
    Command(("echo", f"; touch {tmp_path}/d")).act(hostile)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_program_is_not_delivered_and_its_last_words_are_kept(event) -> None:
    with pytest.raises(DeliveryError, match="exit code 3: no such queue") as raised:
        python("import sys; print('no such queue'); sys.exit(3)").act(event)
    assert not raised.value.final


@pytest.mark.parametrize("behind", [0, 470], ids=["whole", "cut in two"])
def test_no_secret_that_a_program_prints_is_told(event, behind: int) -> None:
    script = f"import sys; print('GET /hook?token=' + 40 * 's3' + ' ' + {behind} * '.'); sys.exit(1)"
    with pytest.raises(DeliveryError, match="exit code 1: ") as raised:
        python(script).act(event)
    assert "s3s3" not in str(raised.value)


def test_a_program_that_hangs_is_killed_with_its_children(event, tmp_path: Path) -> None:
    child = f"import time,os; open({str(tmp_path / 'pid')!r},'w').write(str(os.getpid())); time.sleep(60)"
    script = f"import subprocess,sys,time; subprocess.Popen([sys.executable,'-c',{child!r}]); time.sleep(60)"
    began = time.monotonic()
    with pytest.raises(DeliveryError, match="killed after 2 s"):
        python(script, timeout=2.0).act(event)
    assert time.monotonic() - began < 20
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.1)
    os.kill(pid, 9)
    raise AssertionError("the child lives on")


def test_a_program_that_is_not_there(event) -> None:
    with pytest.raises(DeliveryError, match="cannot be started"):
        Command(("/no/such/program",)).act(event)


def test_only_the_named_events_start_it(event, tmp_path: Path) -> None:
    touch = Command(("touch", str(tmp_path / "seen")))
    touch.act({**event, "type": "opmon.recovered"})
    assert not (tmp_path / "seen").exists()
    Command(("touch", str(tmp_path / "seen")), on=("opmon.recovered",)).act({**event, "type": "opmon.recovered"})
    assert (tmp_path / "seen").exists()


@pytest.mark.parametrize("argv", ["rm -rf /", [], [""], ["a", 3], ["a\0b"]])
def test_argv_is_a_list_of_words(argv: Any) -> None:
    with pytest.raises(InputError, match="argv"):
        Command(argv)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, 10**6])
def test_timeouts_that_cannot_be(timeout: Any) -> None:
    with pytest.raises(InputError, match="timeout"):
        Command(("true",), timeout=timeout)


def test_variables_of_hostile_text_can_always_be_passed() -> None:
    found = variables({"id": "1", "type": "opmon.alarm", "message": "a\0b" + "x" * 10**6})
    assert "\0" not in found["OPMON_MESSAGE"]
    assert len(found["OPMON_MESSAGE"]) <= 32_000
