"""A PostgreSQL that answers and lets nobody in is not said to be silent."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from opmon.errors import DatabaseUnavailable
from opmon.sources.sql.connecting import session
from tests.sources.sql.conftest import Production


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"database": "nowhere"}, "is not there. Create it, or name another in 'database' of the source"),
        ({"username": "nobody_at_all"}, "it knows no such user"),
        ({"ssl_mode": "require"}, "'database' of the source cannot be used as it is written: .*ssl_mode"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_by_what_helps(
    on_postgres: Production, change: dict[str, str], words: str
) -> None:
    url = sa.engine.make_url(on_postgres.address)
    url = url.update_query_dict(change) if "ssl_mode" in change else url.set(**change)  # type: ignore[arg-type]
    address = url.render_as_string(hide_password=False)
    with pytest.raises(DatabaseUnavailable, match=words), session(address, "the log", timedelta(seconds=60)):
        pass
