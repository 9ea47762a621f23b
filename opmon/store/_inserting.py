"""Many rows into a table, as fast as each database takes them: a million labels must not take minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from opmon.store._texts import NOT_TAKEN

_FEW = 200
_AT_ONCE = 50_000
_SENT_AT_ONCE = 5_000


def insert(connection: Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Insert the rows, whose values are in the order of ``columns``. Where they are few, like any others."""
    if len(rows) <= _FEW:
        connection.execute(table.insert(), [dict(zip(columns, row, strict=True)) for row in rows])
    elif connection.dialect.name == "sqlite":
        _sqlite(connection, table, columns, rows)
    else:
        _postgresql(connection, table, columns, rows)


def _sqlite(
    connection: Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> None:
    """With moments as SQLAlchemy writes them: in UTC, without their zone."""
    moments: dict[datetime, str] = {}
    places = [place for place, name in enumerate(columns) if isinstance(table.c[name].type, sa.types.TypeDecorator)]

    def plain(row: tuple[object, ...]) -> tuple[object, ...]:
        values = list(row)
        for place in places:
            moment = values[place]
            if isinstance(moment, datetime):
                text = moments.get(moment)
                if text is None:
                    text = moments[moment] = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
                values[place] = text
        return tuple(values)

    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" for _ in columns)
    statement = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608 - names of our own
    for start in range(0, len(rows), _AT_ONCE):
        connection.exec_driver_sql(statement, [plain(row) for row in rows[start : start + _AT_ONCE]])


def _postgresql(
    connection: Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> None:
    """In the text of ``COPY``, a column at a time: most values of a column are the same, and are written once."""
    names = ", ".join(f'"{name}"' for name in columns)
    cursor = connection.connection.cursor()
    try:
        with cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
            for start in range(0, len(rows), _SENT_AT_ONCE):
                written = map(_written, zip(*rows[start : start + _SENT_AT_ONCE], strict=True))
                copy.write("".join(f"{line}\n" for line in map("\t".join, zip(*written, strict=True))))
    finally:
        cursor.close()


def _written(values: tuple[object, ...]) -> list[str]:
    """The values of one column as ``COPY`` reads them."""
    texts = {value: _text(value) for value in set(values)}
    return [texts[value] for value in values]


def _text(value: object) -> str:
    r"""
    >>> [_text(value) for value in (None, True, 7, 0.5, "a\tb", "\\N")]
    ['\\N', 'True', '7', '0.5', 'a\\tb', '\\\\N']
    """
    return "\\N" if value is None else NOT_TAKEN.sub(" ", str(value)).translate(_ESCAPED)


_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
