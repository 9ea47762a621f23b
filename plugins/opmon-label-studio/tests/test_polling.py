"""Answers are heard once and by one name, whatever happens while they are polled."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("status", [403, 404])
def test_a_token_that_may_not_see_users_knows_them_by_their_numbers(status: int) -> None:
    with stand_in("pets") as studio:
        studio.add("t1-0123456789ab", "cat")
        studio.fails["/api/users/"] = [status]
        assert [(said.annotator, said.truth) for said in studio.bound("pets").pull("").said] == [("user-7", "cat")]
