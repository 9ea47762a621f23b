"""What is forgotten is shown no more: neither the task, wherever it is, nor the file of its picture."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from opmon_label_studio.provider import LabelStudio
from stand_in import StandIn, stand_in

from opmon.types import Guide, Task

PIXELS = np.random.default_rng(0).bytes(20_000)
PICTURE = {"photo": {"base64": base64.b64encode(b"\x89PNG\r\n\x1a\n" + PIXELS).decode()}}
TASKS = [Task(k, "pets", 1, f"i{k}", PICTURE, f"t{k}-0123456789ab", ("cat", "dog")) for k in (1, 2)]  # type: ignore[arg-type]
FIRST, SECOND = (task.key for task in TASKS)
GUIDE = Guide(classes={"cat": "", "dog": ""})


def asked(studio: StandIn) -> LabelStudio:
    """The provider, whose project has both tasks and the files of their pictures."""
    bound = replace(studio.bound("pets"), project="made").bind("pets", GUIDE)
    bound.push(TASKS)
    assert len(studio.tasks) == len(studio.files) == 2
    return bound


def shown(studio: StandIn) -> list[str]:
    return [task["data"]["opmon"] for task in studio.tasks]


@pytest.mark.parametrize("lists_files", [True, False])
def test_a_picture_goes_with_its_task(lists_files: bool) -> None:
    with stand_in("pets") as studio:
        bound = asked(studio)
        studio.lists_files = lists_files
        assert bound.forget([FIRST]) == {FIRST}
        assert shown(studio) == [SECOND]
        assert [name for _, name in studio.files.values()] == [f"upload/2/0a1b2c3d-{SECOND}.png"]
        assert bound.forget([FIRST, "t9-0123456789ab"]) == {FIRST, "t9-0123456789ab"}


def test_a_picture_that_nobody_can_tell_is_told_and_its_task_stays() -> None:
    """Of a task that was made before the number of its file was noted, in a release that lists no files."""
    with stand_in("pets") as studio:
        bound = asked(studio)
        for task in studio.tasks:
            task["meta"]["opmon"].pop("file")
        studio.lists_files = False
        assert bound.forget([FIRST]) == set()
        assert shown(studio) == [FIRST, SECOND]
        studio.lists_files = True
        assert bound.forget([FIRST]) == {FIRST}
        assert (shown(studio), len(studio.files)) == ([SECOND], 1)


def test_every_task_of_a_key_goes_in_whichever_project_it_is() -> None:
    """Where an import was doubled and both were answered, and where the configuration names another project now."""
    with stand_in("pets") as studio:
        bound = asked(studio)
        for project in (1, 2):
            studio.add(FIRST, "cat", project=project)
        elsewhere = replace(bound, project="not made yet").bind("pets", GUIDE)
        assert elsewhere.forget([FIRST]) == {FIRST}
        assert shown(studio) == [SECOND]


def test_what_was_cut_off_is_gone_on_with() -> None:
    with stand_in("pets") as studio:
        bound = asked(studio)
        studio.add("t7-0123456789ab", project=2)  # a task of another input
        del studio.tasks[0]  # its file is still there
        assert bound.forget([FIRST]) == {FIRST}
        assert len(studio.files) == 1
        studio.files.clear()  # but not the task
        assert bound.forget([SECOND]) == {SECOND}
        assert shown(studio) == ["t7-0123456789ab"]
