"""The judge ``command`` with real programs: good ones, and such as hang, flood, die and lie."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from opmon.abc import Opinion, Question
from opmon.errors import InputError, UnavailableError
from opmon.judges.command import LONGEST_LINE, CommandJudge
from opmon.testing import check_judge
from opmon.types import Guide
from tests.patience import until

GUIDE = Guide(classes={"cat": "", "dog": ""})
HEAD = "import json, os, sys, time\nfor line in sys.stdin:\n    asked = json.loads(line)\n    key = asked['key']\n"


def judge(tmp_path: Path, body: str, **arguments: Any) -> CommandJudge:
    script = tmp_path / "judge.py"
    script.write_text(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))
    return CommandJudge([sys.executable, "-u", str(script)], **arguments)  # type: ignore[arg-type]


def questions(count: int) -> list[Question]:
    return [Question(f"k{number}", {"x": number}) for number in range(count)]


def heard(judge: CommandJudge, count: int) -> tuple[list[Opinion], str]:
    came: list[Opinion] = []
    try:
        for each in judge.answer(questions(count), GUIDE):
            came.append(each)
    except UnavailableError as exc:
        return came, str(exc)
    return came, ""


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    check_judge(judge(tmp_path, "print(json.dumps({'key': key, 'answer': 'dog' if '2' in line else 'cat'}))"))


def test_scores_numbers_and_nothing_are_read_strictly(tmp_path: Path) -> None:
    body = """said = [{"scores": {"cat": 0.9, "dog": 0.1}}, {"answer": "dog"}, {"answer": None}]
said += [{"scores": {"cat": 7}}, {}]
print(json.dumps({"key": key, **said[asked["input"]["x"]]}))
print("progress: not an answer")"""
    came, problem = heard(judge(tmp_path, body), 5)
    assert problem == ""
    assert [each.scores for each in came[:1]] == [{"cat": 0.9, "dog": 0.1}]
    assert [each.answer for each in came] == [None, "dog", None, None, None]


def test_it_knows_what_may_be_answered_and_nothing_of_opmons_environment(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET_OF_OPMON", "1")
    monkeypatch.setenv("MEANT", "yes")
    body = """classes = json.loads(os.environ["OPMON_GUIDE"])["classes"]
clean = "SECRET_OF_OPMON" not in os.environ and os.environ["MEANT"] == "yes"
print(json.dumps({"key": key, "answer": sorted(classes)[0] if clean else "dog"}))"""
    came, _ = heard(judge(tmp_path, body, pass_environment=("MEANT",)), 1)
    assert came == [Opinion("k0", "cat")]


def test_one_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    body = f"""print(json.dumps({{"key": key, "answer": "cat"}}), flush=True)
if asked["input"]["x"] == 2:
    if os.fork() == 0:
        open({str(tmp_path / "child")!r}, "w").write(str(os.getpid()))
    time.sleep(600)"""
    begun = time.monotonic()
    came, problem = heard(judge(tmp_path, body, timeout=1.5), 50)
    assert time.monotonic() - begun < 30
    assert len(came) == 3
    assert "gave no answer for 1.5 s and was killed" in problem
    child = int((tmp_path / "child").read_text())
    until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_one_that_only_says_how_far_it_is_hangs_too(tmp_path: Path) -> None:
    came, problem = heard(judge(tmp_path, "while True: print('still thinking'); time.sleep(0.05)", timeout=0.6), 3)
    assert came == []
    assert "gave no answer for 0.6 s" in problem


@pytest.mark.parametrize("flood", ["x" * 100, "x" * 100 + "\\n"], ids=["one line", "many lines"])
def test_one_that_floods_is_killed(tmp_path: Path, flood: str) -> None:
    came, problem = heard(judge(tmp_path, f"while True: sys.stdout.write('{flood}')"), 3)
    assert came == []
    assert f"more than {LONGEST_LINE:,} bytes" in problem


def test_one_that_dies_says_why_and_what_it_said_counts(tmp_path: Path) -> None:
    body = """if asked["input"]["x"] == 3: sys.exit("no more money")
print(json.dumps({"key": key, "answer": "dog"}), flush=True)"""
    came, problem = heard(judge(tmp_path, body), 10)
    assert [each.key for each in came] == ["k0", "k1", "k2"]
    assert "exit code 1" in problem
    assert "7 of 10 inputs unanswered: no more money" in problem


@pytest.mark.parametrize("behind", [0, 470], ids=["whole", "cut in two"])
def test_no_secret_that_it_prints_is_told(tmp_path: Path, behind: int) -> None:
    dying = f"print('GET /v1?token=' + 40 * 's3' + ' ' + {behind} * '.', file=sys.stderr)\nos._exit(3)"
    _, problem = heard(judge(tmp_path, dying), 1)
    assert "exit code 3" in problem
    assert "s3s3" not in problem


def test_answers_to_what_was_not_asked_and_second_ones_do_not_count(tmp_path: Path) -> None:
    body = """for other in ("k1", "elsewhere", key, key):
    print(json.dumps({"key": other, "answer": "dog" if other == "elsewhere" else "cat"}))"""
    came, problem = heard(judge(tmp_path, body), 2)
    assert sorted(came, key=lambda each: each.key) == [Opinion("k0", "cat"), Opinion("k1", "cat")]
    assert problem == ""


def test_one_that_cannot_be_started_is_told() -> None:
    with pytest.raises(UnavailableError, match="cannot be started"):
        list(CommandJudge(("/nowhere/judge",)).answer(questions(1), GUIDE))


def test_many_inputs_do_not_block_it(tmp_path: Path) -> None:
    """More than pipes hold, both ways at once."""
    count = 3000
    given = [Question(f"k{number}", {"x": "y" * 500}) for number in range(count)]
    said = list(
        judge(tmp_path, "print(json.dumps({'key': key, 'answer': 'cat', 'why': 'z' * 300}))").answer(given, GUIDE)
    )
    assert len(said) == count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": "judge.sh"}, "command must be a list"),
        ({"command": ()}, "command must be a list"),
        ({"command": ("a",), "timeout": 0}, "timeout must be a number of seconds"),
    ],
)
def test_wrong_parameters_are_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CommandJudge(**arguments)


def test_it_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        heard(judge(tmp_path, "print(json.dumps({'key': key, 'answer': 'cat'}))"), 2)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
