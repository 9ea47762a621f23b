from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.config import Settings
from opmon.errors import ConfigError
from opmon.redaction import hide_environment, redacted, shown_address
from opmon.store.engine import connect

SECRET = "s3cret"
ADDRESSES = [
    f"postgresql+psycopg://opmon:{SECRET}@db/opmon",
    f"postgresql+psycopg://db/opmon?user=opmon&password={SECRET}",
    f"postgresql+psycopg://db/opmon?pass%77ord={SECRET}",
    f"postgresql+psycopg://db/opmon?sslpassword={SECRET}&sslmode=require",
    f"postgresql:/opmon:{SECRET}@db/opmon",
    f"postgresql//opmon:{SECRET}@db/opmon",
    f"opmon:{SECRET}@db/opmon",
    f"postgresql://opmon:{SECRET}/opmon",
    f"postgresql://opmon:{SECRET}",
    f"postgresql://opmon:p@{SECRET}/w@db:5432/opmon",
    f"postgresql+psycopg://opmon:x@db:{SECRET}/opmon",
    f"host=db user=opmon password={SECRET}",
    f"host=db password = {SECRET} dbname=opmon",
    f"mysql://opmon:{SECRET}@db/opmon",
    f"nosuch+driver://opmon:{SECRET}@db/opmon",
    f"https://{SECRET}@mlflow.example.com",
]


def said(asked: Callable[[], str]) -> str:
    """What is told, or why it is refused."""
    try:
        return asked()
    except ConfigError as exc:
        return str(exc)


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
def test_no_address_is_shown_with_its_secret(address: str) -> None:
    assert SECRET not in shown_address(address)
    assert "***" in shown_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "sqlite:////a/b@c.db",
        "sqlite:///opmon.db",
        "postgresql://db:5432/opmon",
        "postgresql://[::1]:5432/opmon",
        "x.db",
    ],
)
def test_what_is_no_secret_is_shown(address: str) -> None:
    assert shown_address(address) == address


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: f"~{text}~"))
def test_no_password_before_a_host_is_left_whatever_is_in_it(password: str) -> None:
    assert shown_address(f"postgresql://user:{password}@host/name") == "postgresql://user:***@host/name"


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
@pytest.mark.parametrize("key", ["database", "tracking_uri"])
def test_a_configuration_tells_no_secret_of_its_addresses(workbench: Any, key: str, address: str) -> None:
    """Neither in the error that refuses it, nor in what the settings show, nor where the database is opened."""
    configured = workbench.configuration("sqlite:///opmon.db")
    configured |= {"database": address} if key == "database" else {"mlflow": {"tracking_uri": address}}

    def told() -> str:
        settings = Settings.from_mapping(configured, "/watch")  # the name of a temporary folder would hold the secret
        return f"{settings!r} {settings.dump()}"

    assert SECRET not in said(told)


@pytest.mark.parametrize("address", [address for address in ADDRESSES if "https" not in address])
def test_an_opened_database_tells_no_secret(address: str) -> None:
    assert SECRET not in said(lambda: connect(address).where)


def test_a_text_that_names_an_address_is_shown_without_its_user() -> None:
    told = redacted(f"GET http://ann:{SECRET}@mlflow/api?token={SECRET} failed")
    assert told == "GET http://***@mlflow/api?token=*** failed"


def test_a_secret_of_the_environment_is_hidden_however_it_is_written(tmp_path: Path) -> None:
    key, odd, file = "/wJalrXUtnFEMI+K7MDENG/bPxRfiCYEXAMPLEKEY", "qu\"ote\\and'more", tmp_path / "cloud.json"
    hide_environment({"AWS_SECRET_ACCESS_KEY": key, "DB_PASSWORD": odd, "GOOGLE_APPLICATION_CREDENTIALS": str(file)})
    for written in (key, odd, repr(odd), json.dumps(odd)):
        assert redacted(f"{written} was refused").strip("'\"").startswith("***")
    assert redacted(f"{file} is not there") == f"{file} is not there", "the name of a file is no secret"


def test_what_opmon_keeps_is_for_its_user_alone(workbench: Any, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from opmon.cli import group

    database, tasks = tmp_path / "own" / "opmon.db", tmp_path / "tasks.csv"
    config = str(workbench.write_yaml(f"sqlite:///{database}"))
    workbench.write_window()
    CliRunner().invoke(group, ["run", "-c", config], standalone_mode=False)
    CliRunner().invoke(group, ["labels", "export", "-c", config, "-o", str(tasks)], standalone_mode=False)
    files = [tasks, *database.parent.iterdir()]
    assert len(files) >= 2
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    assert oct((workbench.folder / ".opmon").stat().st_mode & 0o777) == "0o700"


def test_a_database_that_others_may_read_stays_as_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "opmon.db"
    path.touch(0o640)
    path.chmod(0o640)
    with connect(f"sqlite:///{path}").write():
        pass
    assert oct(path.stat().st_mode & 0o777) == "0o640"
