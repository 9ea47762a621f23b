"""Tables written by deltalake itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from opmon.errors import InputError, SourceError
from opmon.sources.delta import log
from opmon.sources.delta.delta import GONE, Delta
from opmon.testing.sources import check_source, positions_after


def rows(ids: Sequence[int], **columns: Any) -> pa.Table:
    days = [f"2026-03-{1 + k % 3:02}" for k in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "day": days, "x": [k / 2 for k in ids], **columns})


def append(path: Path, ids: Sequence[int], **columns: Any) -> None:
    write_deltalake(str(path), rows(ids, **columns), mode="append", partition_by=["day"], schema_mode="merge")


def ids_of(source: Delta, positions: dict[str, str]) -> list[int]:
    """The ids of what is pending, after which the positions are moved."""
    slices = source.pending(positions)
    positions_after(positions, slices)
    return [value for batch in source.read(slices) for value in batch.rows["id"].to_pylist()]


def test_it_keeps_the_promises_of_sources(tmp_path: Path) -> None:
    for begin in range(0, 40, 10):
        append(tmp_path, range(begin, begin + 10))
    check_source(Delta(str(tmp_path)), rows(range(40)), ordered=False)
    from_the_log = Delta(str(tmp_path), since=0)
    slices = from_the_log.pending(from_the_log.begins())
    assert sorted(k for batch in from_the_log.read(slices) for k in batch.rows["id"].to_pylist()) == list(range(40))


def test_it_keeps_them_in_an_object_store(bucket: str) -> None:
    log._options(bucket)
    for begin in (0, 15):
        write_deltalake(
            f"{bucket}/t", rows(range(begin, begin + 15)), mode="append", storage_options=log._options(bucket)
        )
    check_source(Delta(f"{bucket}/t"), rows(range(30)), ordered=False)


def test_each_version_gives_what_it_added_and_compaction_nothing(tmp_path: Path) -> None:
    append(tmp_path, range(6))
    source, positions = Delta(str(tmp_path)), dict[str, str]()
    assert sorted(ids_of(source, positions)) == list(range(6))
    append(tmp_path, range(6, 9))
    DeltaTable(str(tmp_path)).optimize.compact()
    assert sorted(ids_of(source, positions)) == [6, 7, 8]
    DeltaTable(str(tmp_path)).optimize.z_order(["id"])
    DeltaTable(str(tmp_path)).create_checkpoint()
    assert source.pending(positions) == []
    append(tmp_path, [9])
    assert ids_of(source, positions) == [9]
    assert sorted(ids_of(source, {})) == list(range(10))


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), rows(range(10)))
    source, positions, found = Delta(str(tmp_path)), dict[str, str](), []
    while slices := source.pending(positions, limit=3):
        assert sum(piece.rows for piece in slices) <= 3
        found += [k for batch in source.read(slices) for k in batch.rows["id"].to_pylist()]
        positions_after(positions, slices)
    assert found == list(range(10))


def test_new_columns_are_null_where_they_were_not_there(tmp_path: Path) -> None:
    append(tmp_path, [1])
    append(tmp_path, [2], score=[0.5])
    source = Delta(str(tmp_path))
    found = [row for batch in source.read(source.pending({})) for row in batch.rows.to_pylist()]
    assert [(row["id"], row["score"], row["day"]) for row in found] == [(1, None, "2026-03-02"), (2, 0.5, "2026-03-03")]


def test_partitions_have_their_types(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    table = pa.table(
        {"id": [1], "k": pa.array([7], pa.int32()), "at": pa.array([at], pa.timestamp("us", "UTC")), "t": ["a b/ü"]}
    )
    write_deltalake(str(tmp_path), table, partition_by=["k", "at", "t"])
    write_deltalake(str(tmp_path), table, mode="append")
    write_deltalake(str(tmp_path), table.set_column(3, "t", pa.array([None], pa.string())), mode="append")
    for since in (None, 0):
        source = Delta(str(tmp_path), since=since)
        batches = list(source.read(source.pending(source.begins())))
        found = [row for batch in batches for row in batch.rows.to_pylist()]
        assert found[0] == found[1] == {"id": 1, "k": 7, "at": at, "t": "a b/ü"}
        assert found[2]["t"] is None
    assert [batch.rows.schema.names for batch in source.read(source.pending({}), ["t"])] == [["t"]] * 3


def test_rows_that_are_deleted_or_updated_stay_as_they_were_read(tmp_path: Path) -> None:
    append(tmp_path, range(6))
    source, positions = Delta(str(tmp_path)), dict[str, str]()
    slices = source.pending(positions)
    ids_of(source, positions)
    table = DeltaTable(str(tmp_path))
    table.delete("id = 1")
    table.update(predicate="id = 2", updates={"x": "9.0"})
    assert source.pending(positions) == []
    assert sum(batch.rows.num_rows for batch in source.read(slices)) == 6
    assert sorted(ids_of(source, {})) == [0, 2, 3, 4, 5]


def test_versions_that_rewrite_and_add_stop_it_or_are_passed_over(tmp_path: Path) -> None:
    append(tmp_path, range(3))
    source, positions = Delta(str(tmp_path)), dict[str, str]()
    ids_of(source, positions)
    new = rows([2, 3])
    merge = DeltaTable(str(tmp_path)).merge(new, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    with pytest.raises(SourceError, match=r"version 1 \(MERGE\) changed rows and may have added some.*changes: skip"):
        source.pending(positions)
    write_deltalake(str(tmp_path), rows([7]), mode="overwrite")
    append(tmp_path, [8])
    assert ids_of(Delta(str(tmp_path), changes="skip"), positions) == [8]
    with pytest.raises(SourceError, match=r"version 2 \(WRITE\) replaced the table's rows"):
        source.pending({"table": "version 1, file 1000000000, row 0"})


def test_a_restore_that_brings_rows_back_stops_it_or_is_passed_over(tmp_path: Path) -> None:
    positions = dict[str, str]()
    for ids in ([0, 3], [1, 4]):  # a day each
        append(tmp_path, ids)
        assert sorted(ids_of(Delta(str(tmp_path)), positions)) == ids
    table = DeltaTable(str(tmp_path))
    table.delete("day = '2026-03-02'")
    table.restore(1)
    append(tmp_path, [2])
    with pytest.raises(SourceError, match=r"version 3 \(RESTORE\) changed rows.*changes: skip"):
        Delta(str(tmp_path)).pending(positions)
    assert ids_of(Delta(str(tmp_path), changes="skip"), dict(positions)) == [2]


def test_a_restore_that_takes_rows_away_brings_none(tmp_path: Path) -> None:
    source, positions = Delta(str(tmp_path)), dict[str, str]()
    for ids in ([0, 3], [1, 4]):
        append(tmp_path, ids)
    assert sorted(ids_of(source, positions)) == [0, 1, 3, 4]
    DeltaTable(str(tmp_path)).restore(0)
    append(tmp_path, [2])
    assert ids_of(source, positions) == [2]


def test_a_restore_that_an_earlier_release_has_begun_is_read_to_its_end(tmp_path: Path, monkeypatch: Any) -> None:
    for ids in ([0, 3], [1, 4]):
        append(tmp_path, ids)
    positions, source = dict[str, str](), Delta(str(tmp_path))
    ids_of(source, positions)
    table = DeltaTable(str(tmp_path))
    table.delete("day = '2026-03-02'")
    table.restore(1)
    with monkeypatch.context() as earlier:
        earlier.setattr(log, "_AS_BEFORE", "")
        slices = source.pending(positions, limit=1)
        positions_after(positions, slices)
    assert sum(batch.rows.num_rows for batch in source.read(slices)) == 1
    assert len(ids_of(source, positions)) == 1


def test_files_that_vacuum_removed_are_told_before_and_after_a_round_takes_them(tmp_path: Path) -> None:
    append(tmp_path, [0])
    source, positions = Delta(str(tmp_path)), dict[str, str]()
    ids_of(source, positions)
    append(tmp_path, [3])
    slices = source.pending(positions)
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    assert [k for batch in source.read(slices) for k in batch.rows["id"].to_pylist()] == [3]
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for ask in (
        lambda: source.pending(positions),
        lambda: list(source.read(slices)),
        lambda: source.fetch(slices, {0: [0]}),
    ):
        with pytest.raises(SourceError, match=r"is gone: VACUUM removed it.*delta.deletedFileRetentionDuration"):
            ask()


def test_what_vacuum_removed_is_passed_over_and_counted_where_that_is_said(tmp_path: Path) -> None:
    append(tmp_path, [0])
    stopping, positions = Delta(str(tmp_path)), dict[str, str]()
    ids_of(stopping, positions)
    append(tmp_path, [3])
    opened = stopping.pending(positions)
    append(tmp_path, [6, 9])
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    append(tmp_path, [12])
    with pytest.raises(SourceError, match="vacuumed: skip"):
        stopping.pending(positions)
    source = Delta(str(tmp_path), vacuumed="skip")
    slices = source.pending(positions)
    assert slices[0].start == positions["table"], "nothing is left between the last round and this one"
    assert source.lost(slices) == {GONE: 3}
    assert ids_of(source, positions) == [12]
    assert source.pending(positions) == []
    (batch,) = source.read(opened)
    assert (batch.rows.num_rows, batch.unreadable) == (0, {GONE: 1}), "of a round that was open it is a loss as well"
    append(tmp_path, [15])
    assert source.lost(source.pending(positions)) == {}


def test_a_source_that_passes_over_keeps_the_promises_of_sources(tmp_path: Path) -> None:
    for begin in range(0, 40, 10):
        append(tmp_path, range(begin, begin + 10))
    check_source(Delta(str(tmp_path), vacuumed="skip"), rows(range(40)), ordered=False)


def test_what_is_gone_from_the_log_is_passed_over_where_that_is_said(tmp_path: Path, caplog: Any) -> None:
    for k in range(4):
        append(tmp_path, [k])
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    source, positions = Delta(str(tmp_path), vacuumed="skip"), {"table": "version 0, file 0, row 1"}
    assert ids_of(source, positions) == [2, 3]
    assert "version 1 is gone from its log" in caplog.text
    append(tmp_path, [9])
    assert ids_of(source, positions) == [9]


def test_a_part_of_the_log_that_is_gone_is_told(tmp_path: Path) -> None:
    for k in range(4):
        append(tmp_path, [k])
    DeltaTable(str(tmp_path)).create_checkpoint()
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(SourceError, match="version 1 is gone from the table's log"):
        Delta(str(tmp_path)).pending({"table": "version 0, file 0, row 1"})
    assert sorted(ids_of(Delta(str(tmp_path)), {})) == [0, 1, 2, 3]


def set_times(path: Path, first: datetime) -> None:
    """Let the versions be an hour apart."""
    for number, file in enumerate(sorted((path / "_delta_log").glob("*.json"))):
        stamp = int((first + timedelta(hours=number)).timestamp() * 1000)
        file.write_text(re.sub(r'"timestamp":\d+', f'"timestamp":{stamp}', file.read_text()))


@pytest.mark.parametrize(
    ("since", "found"),
    [(0, [0, 1, 2, 3]), (2, [2, 3]), ("now", []), ("2026-03-01T13:30:00", [2, 3]), ("2026-01-01", [0, 1, 2, 3])],
)
def test_since_is_a_version_a_date_or_now(tmp_path: Path, since: Any, found: list[int]) -> None:
    for k in range(4):
        append(tmp_path, [k])
    set_times(tmp_path, datetime(2026, 3, 1, 12, tzinfo=UTC))
    source = Delta(str(tmp_path), since=since)
    positions = dict(source.begins())
    assert ids_of(source, positions) == found
    append(tmp_path, [9])
    assert ids_of(source, positions) == [9]


def altered(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A table whose first commit says something else."""
    file = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        change(action)
    file.write_text("\n".join(map(json.dumps, actions)))


def test_what_opmon_does_not_read_is_refused_in_words(tmp_path: Path) -> None:
    def with_mapping(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}

    def with_deleted_rows(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "u",
                "pathOrInlineDv": "x",
                "sizeInBytes": 1,
                "cardinality": 1,
            }

    append(tmp_path / "a", [0])
    altered(tmp_path / "a", with_mapping)
    with pytest.raises(SourceError, match=r"maps its columns to other names .*name\)"):
        Delta(str(tmp_path / "a")).pending({})
    append(tmp_path / "b", [0])
    altered(tmp_path / "b", with_deleted_rows)
    source = Delta(str(tmp_path / "b"), since=0)
    with pytest.raises(SourceError, match="deletion vectors"):
        list(source.read(source.pending(source.begins())))


def test_a_table_that_is_not_there_and_positions_of_others_are_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no Delta table at .*nowhere"):
        Delta(str(tmp_path / "nowhere")).pending({})
    append(tmp_path, [0])
    with pytest.raises(SourceError, match="was not written by the source delta"):
        Delta(str(tmp_path)).pending({"table": "100/250@4096-17#0a1b2c3d"})
    source = Delta(str(tmp_path))
    with pytest.raises(SourceError, match=r"has no column 'idd'; it has: id, day, x.*'id'"):
        list(source.read(source.pending({}), ["idd"]))


def test_an_empty_table_has_nothing(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), rows([]))
    assert Delta(str(tmp_path)).pending({}) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": ""}, "path is empty"),
        ({"changes": "x"}, "one of stop, skip"),
        ({"vacuumed": "x"}, "one of stop, skip"),
        ({"since": -1}, "since must be a version"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_read(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Delta(**{"path": "t", **options})


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'opmon\[delta\]'"):
        Delta("t")
