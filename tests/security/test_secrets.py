"""Secrets in whatever form they come: none is told, and what is told stays readable. Run at once: nothing is served."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from opmon.cli import main
from opmon.logs.formats import Json, Plain
from opmon.redaction import hide, redacted, secrets_in
from tests.patience import LONGEST

SECRET = "Zk4-s3cret_x9"
FORMS = [
    "postgresql+psycopg://opmon:{}@db/opmon",
    "https://{}@mlflow.example.com/",
    "https://ann:{}@mlflow.example.com:5000/api?x=1",
    "https://mlflow/?password={}&x=1",
    "postgresql://db/opmon?sslpassword={}",
    "https://acc.blob.core.windows.net/c?sv=2024&sig={}&se=2030",
    "https://bucket.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Credential=x",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",
    "SharedAccessSignature={}",
    "AWS_SECRET_ACCESS_KEY={}",
    "aws_session_token = {}",
    "export MLFLOW_TRACKING_TOKEN='{}'",
    "Authorization: Bearer {}",
    "authorization=Bearer {}",
    "{{'Authorization': 'Basic {}'}}",
    '{{"api_key": "{}"}}',
    '{{"client_secret":"{}"}}',
    "{{'password': '{}', 'user': 'a'}}",
    "Bearer {}-long-enough",
    "host=db user=opmon password={} dbname=opmon",
    "redis://:{}@cache:6379/0",
    "ftp://a:{}@@host/x",
    "http://ann:{}",
    "Invalid url: http://ann:{}/api/2.0/mlflow/experiments/search",
    "postgresql://ann:{}/opmon",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_that_nobody_told_of_is_known_by_its_form(form: str) -> None:
    given = form.replace("{}", SECRET).replace("{{", "{").replace("}}", "}")
    assert SECRET not in redacted(given)
    assert SECRET not in redacted(f"GET failed for {given}: connection refused")


def test_a_secret_that_is_known_is_hidden_in_any_form() -> None:
    hide(["p/w+d 1&é-unique"])
    written = "p/w+d 1&é-unique"
    for form in (written, "p%2Fw%2Bd%201%26%C3%A9-unique", "p%2Fw%2Bd+1%26%C3%A9-unique", f"x{written}y"):
        assert "unique" not in redacted(f"cannot log in with {form}!")


def test_sentences_stay_as_they_are() -> None:
    for text in (
        "the token is missing or wrong: send Authorization: Bearer <token>",
        "set token: ${OPMON_INGEST_TOKEN}, or listen on 127.0.0.1:8787",
        "say where: country == 'DE' and tokens > 5",
        "no key column 'id' in inputs.parquet; the columns are: a, b",
        "postgresql://db:5432/opmon does not answer",
        "bearer of bad news",
        "GET http://127.0.0.1:5000/api and http://[::1]:5000, https://mlflow:443.",
        "('http://mlflow:5000') or databricks://scope:prefix",
    ):
        assert redacted(text) == text


def test_an_endless_text_takes_no_time() -> None:
    begin = time.monotonic()
    for piece in ("://", "a", "password", "'", "://a:", '"token', "a:", "bearer ", "@"):
        text = piece * 500_000
        assert len(redacted(text)) <= 100_000
    assert time.monotonic() - begin < 20


def test_addresses_tell_their_secrets() -> None:
    assert secrets_in("postgresql://a:b%2Fc@h/x?sslpassword=d") == ["b/c", "d"]
    assert secrets_in("https://token@h/") == ["token"]
    assert secrets_in("opmon:b-c@h/x") == ["b-c"]
    assert secrets_in("models:/digits@champion") == []
    assert secrets_in("http://ann:b-c") == ["b-c"]
    assert secrets_in("http://mlflow:5000") == secrets_in("http://[::1]:5000/x") == secrets_in("http://mlflow") == []


@pytest.mark.parametrize("form", [Json(), Plain()])
def test_no_traceback_tells_one(form: logging.Formatter) -> None:
    try:
        try:
            raise ValueError(f"cannot connect to http://ann:{SECRET}@mlflow/")
        except ValueError as exc:
            raise RuntimeError(f"password={SECRET}") from exc
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "failed: %s", (f"token={SECRET}",), sys.exc_info())
    told = form.format(record)
    assert SECRET not in told
    assert "RuntimeError" in told
    if isinstance(form, Json):
        assert json.loads(told)["level"] == "error"


def test_a_fault_of_opmons_own_tells_none(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fault(*arguments: object, **more: object) -> None:
        raise RuntimeError(f"http://ann:{SECRET}@mlflow/")

    monkeypatch.setattr("opmon.cli.group.main", fault)
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    said = capfd.readouterr()
    assert ended.value.code == 1
    assert "RuntimeError" in said.err
    assert SECRET not in said.err + said.out


MALFORMED = (
    f"http://opmon:{SECRET}@127.0.0.1:9",
    f"http://{SECRET}@127.0.0.1:9",
    f"http//opmon:{SECRET}@127.0.0.1:9",
    f"http://opmon:{SECRET}@[127.0.0.1:9",
    f"http://127.0.0.1:9?password={SECRET}",
    f"http://opmon:{SECRET}",
)


@pytest.mark.parametrize("address", MALFORMED)
def test_commands_tell_no_credentials_of_the_tracking_server(tmp_path: Path, address: str) -> None:
    plain = {
        "mlflow": {"tracking_uri": "${PLACE}"},
        "database": "sqlite:///opmon.db",
        "monitors": {"m": {"model": "models:/m/1", "source": {"path": "p"}}},
    }
    (tmp_path / "opmon.yaml").write_text(yaml.safe_dump(plain))
    environment = {**os.environ, "PLACE": address, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    for command in (["-vv", "check"], ["-vv", "run"]):
        done = subprocess.run(
            [sys.executable, "-m", "opmon", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=LONGEST,
        )
        assert done.returncode != 0
        assert SECRET.encode() not in done.stdout + done.stderr, done.stderr
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "opmon.yaml":
            assert SECRET.encode() not in path.read_bytes(), path
