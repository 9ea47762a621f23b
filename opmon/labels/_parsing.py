"""From the text of a label file to its rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import IO

from opmon.errors import InputError
from opmon.labels.rows import RowError, known_name, row_of, unguarded

Row = dict[str, object] | RowError


def lines(stream: IO[str] | IO[bytes], name: str, longest: int, largest: int) -> Iterator[str]:
    """The lines of a text or binary stream, bounded in size, without the byte-order mark."""
    total = number = 0
    while line := stream.readline(longest + 1):
        number += 1
        total += len(line)
        if len(line) > longest:
            raise InputError(f"{name}: line {number} is longer than {longest:,} bytes")
        if total > largest:
            raise InputError(f"{name} is larger than {largest:,} bytes; split it")
        if isinstance(line, bytes):
            try:
                line = line.decode()
            except UnicodeDecodeError as exc:
                raise InputError(f"{name}: line {number} is not UTF-8; save the file as UTF-8 ('CSV UTF-8')") from exc
        yield line.removeprefix("\ufeff") if number == 1 else line


def json_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _json_row(line)


def _json_row(line: str) -> Row:
    try:
        pairs = _DECODER.decode(line)
        if not isinstance(pairs, _Pairs):
            return RowError('is no JSON object, such as {"monitor": "pets", "input_id": "a-1", "label": "cat"}')
        return row_of(iter(pairs))
    except RowError as exc:
        return exc
    except RecursionError:
        return RowError("is nested too deeply")
    except ValueError as exc:
        return RowError(f"is no JSON object: {exc}")


class _Pairs(list[tuple[str, object]]):
    """A JSON object, with keys that come twice still twice."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs)


def table_rows(lines: Iterator[str], name: str) -> Iterator[tuple[int, Row]]:
    first = next(lines, None)
    if first is None or not first.strip():
        raise InputError(f"{name} is empty; its first line must name the columns, such as task_key,label")
    delimiter = delimiter_of(first)
    table = csv.reader(_chained(first, lines), delimiter=delimiter, strict=True)
    header = _header(table, name)
    while True:
        line = table.line_num + 1
        try:
            values = next(table)
        except StopIteration:
            return
        except csv.Error as exc:
            yield line, RowError(f"is no row of a table: {exc}")
            return
        if any(value.strip() for value in values):
            yield line, _table_row(header, values)


def _table_row(header: list[str], values: list[str]) -> Row:
    if len(values) != len(header):
        return RowError(
            f"has {len(values)} values for {len(header)} columns; put text that holds the separator in quotes"
        )
    try:
        return row_of((name, unguarded(value)) for name, value in zip(header, values, strict=True))
    except RowError as exc:
        return exc


def delimiter_of(first: str) -> str:
    """The separator that finds the most known columns: a spreadsheet writes commas, semicolons or tabs."""
    found = {mark: sum(known_name(part.strip(' "\r\n')) is not None for part in first.split(mark)) for mark in ",;\t"}
    return max(found, key=lambda mark: found[mark])


def _header(table: Iterator[list[str]], name: str) -> list[str]:
    try:
        header = next(table)
    except (csv.Error, StopIteration) as exc:
        raise InputError(f"{name}: its first line does not name columns: {exc}") from exc
    known = {known_name(each) for each in header}
    twice = next((each for each in header if known_name(each) and header.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has two columns called {twice!r}; keep one of them")
    if not {"task_key", "task_id", "input_id"} & known or not {"label", "skip"} & known:
        have = ", ".join(header)[:200]
        raise InputError(f"{name} needs a column task_key (or input_id) and a column label (or truth); it has: {have}")
    return header


def _chained(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
