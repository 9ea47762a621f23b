from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from click.testing import CliRunner

from opmon import disk
from opmon.cli import group
from opmon.errors import NotFoundError, RegistryUnavailable, StateUnavailable
from opmon.registry.translation import translated

FULL = OSError(errno.ENOSPC, "No space left on device", "/var/opmon/a")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "takes no writes"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EACCES, "may not write there"),
        (errno.EIO, "gives errors"),
        (errno.ENOTDIR, "a file where a folder should be"),
    ],
)
def test_what_the_disk_says_is_told_in_words(code: int, words: str) -> None:
    told = disk.trouble(OSError(code, "…", "/var/opmon/a"), Path("/var/opmon"))
    assert isinstance(told, StateUnavailable)
    assert words in str(told)
    assert "/var/opmon/a" in str(told)


def test_what_is_of_another_folder_or_no_disk_is_something_else() -> None:
    assert disk.trouble(OSError(errno.EACCES, "…", "/data/a"), Path("/var/opmon")) is None
    assert disk.trouble(OSError(errno.ECONNREFUSED, "…")) is None
    assert disk.trouble(ValueError("full")) is None


def test_what_a_library_wraps_is_seen() -> None:
    wrapped = ValueError("cannot save")
    wrapped.__cause__ = FULL
    assert "the disk is full" in str(disk.trouble(wrapped))


@pytest.mark.parametrize(
    ("exc", "kind", "words"),
    [
        (FULL, StateUnavailable, "/var/opmon/a cannot be written: the disk is full"),
        (
            ValueError("while downloading one or more artifacts from x:\n[Errno 28] No space left on device"),
            StateUnavailable,
            "the disk of this machine is full",
        ),
        (
            ValueError('500 Server Error: x. Response text: {"message": "[Errno 28] No space left on device"}'),
            RegistryUnavailable,
            "the disk of MLflow at http://mlflow is full",
        ),
        (ValueError("(sqlite3.OperationalError) database or disk is full"), RegistryUnavailable, "disk of MLflow"),
        (FileNotFoundError(errno.ENOENT, "no such file", "a"), NotFoundError, "no such file"),
    ],
)
def test_whose_disk_is_full_is_told(exc: Exception, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words), translated("downloading", "http://mlflow"):
        raise exc


# --- at start ---------------------------------------------------------------------------------------------------------


@contextmanager
def nobody() -> Iterator[None]:
    """The rights of a user whom no folder belongs to: root may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_is_there_or_can_be_made_is_taken(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    disk.require_place(state)
    assert not state.parent.exists(), "nothing is made where it is only asked"
    disk.require_writes(state)
    disk.require_writes(state)
    disk.require_place(state)
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("state", ["file", "file/below"])
def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path, state: str) -> None:
    (tmp_path / "file").write_text("")
    for ask in (disk.require_writes, disk.require_place):
        with pytest.raises(StateUnavailable, match=f"folder {tmp_path / state} cannot be used: there is a file where"):
            ask(tmp_path / state)


def test_a_folder_of_somebody_else_is_told(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "state").mkdir(parents=True)
    (closed / "state").chmod(0o500)
    for ask in (disk.require_writes, disk.require_place):
        with nobody(), pytest.raises(StateUnavailable, match="cannot be used: opmon may not write there"):
            ask(closed / "state")


def test_a_folder_below_that_another_user_made_is_told() -> None:
    """As after one call by root, where all that begin later would fail in their first cycle."""
    with TemporaryDirectory() as name:
        state = Path(name)
        state.chmod(0o777)
        for below in ("rounds", "lost+found"):
            (state / below).mkdir(0o500)
        with nobody(), pytest.raises(StateUnavailable, match="rounds cannot be used: opmon may not write there"):
            disk.require_writes(state)
        (state / "rounds").chmod(0o700)
        (state / "lost+found").chmod(0o700)


@pytest.mark.parametrize("command", ["run", "serve", "check", "ingest"])
def test_commands_refuse_it_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPMON_STATE", str(tmp_path / "file"))
    written = tmp_path / "opmon.yaml"
    monitor = {"model": "models:/digits/1", "source": {"type": "ingest"}}
    nowhere = {"tracking_uri": (tmp_path / "mlruns").as_uri()}
    written.write_text(yaml.safe_dump({"mlflow": nowhere, "monitors": {"digits": monitor}}))
    told = CliRunner().invoke(group, [command, "-c", str(written)])
    if command == "check":
        assert "there is a file where a folder should be" in told.output.replace("\n", " ")
    else:
        assert isinstance(told.exception, StateUnavailable)
