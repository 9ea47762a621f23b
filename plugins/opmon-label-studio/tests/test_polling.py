"""Answers are heard once and by one name, whatever happens while they are polled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from opmon_label_studio.answers import Cursor
from stand_in import stand_in

from opmon.errors import UnavailableError


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_who_the_annotators_are_is_waited_for(status: int) -> None:
    """An answer that is read again, as those of the last minutes are, must not come by another name."""
    with stand_in("pets") as studio:
        studio.add("t1-0123456789ab", "cat")
        studio.fails["/api/users/"] = [status]
        bound = studio.bound("pets")
        with pytest.raises(UnavailableError, match=str(status)):
            bound.pull("")
        first = bound.pull("")
        assert [(said.annotator, said.truth) for said in first.said] == [("ann@example.com", "cat")]
        assert {said.annotator for said in bound.pull(first.cursor).said} == {"ann@example.com"}


def test_a_clock_that_was_ahead_hides_no_answer() -> None:
    now = datetime.now(UTC)
    with stand_in("pets") as studio:
        bound = studio.bound("pets")
        studio.add("t1-0123456789ab", "cat", at=written(now + timedelta(days=1)))
        ahead = bound.pull("")
        studio.add("t2-0123456789ab", "dog", at=written(now))  # the clock was set right
        set_right = bound.pull(ahead.cursor)
        assert ("t2-0123456789ab", "dog") in {(said.task_key, said.truth) for said in set_right.said}
        spoilt = Cursor(1, since=(now + timedelta(days=1)).isoformat()).text
        again = bound.pull(spoilt)
        assert {said.task_key for said in again.said} == {"t1-0123456789ab", "t2-0123456789ab"}
        since = Cursor.of(again.cursor).since
        assert since is not None
        assert datetime.fromisoformat(since) < now + timedelta(minutes=5)


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("status", [403, 404])
def test_a_token_that_may_not_see_users_knows_them_by_their_numbers(status: int) -> None:
    with stand_in("pets") as studio:
        studio.add("t1-0123456789ab", "cat")
        studio.fails["/api/users/"] = [status]
        assert [(said.annotator, said.truth) for said in studio.bound("pets").pull("").said] == [("user-7", "cat")]
