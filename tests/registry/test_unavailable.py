"""Whatever fails below MLflow comes out as one of opmon's errors, soon, and without passwords."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from opmon.abc import Point
from opmon.errors import OpmonError, RegistryUnavailable
from opmon.registry import MlflowRegistry
from opmon.types import ModelVersion

NOW = datetime(2026, 11, 1, tzinfo=UTC)
MODEL = ModelVersion("digits", "2", ("onnx",))


def calls(registry: MlflowRegistry, folder: Path) -> dict[str, Callable[[], Any]]:
    """One call of each method that talks to MLflow."""
    file = folder / "a.txt"
    file.write_text("a")
    return {
        "check": registry.check,
        "resolve": lambda: registry.resolve("models:/digits@champion"),
        "fetch_onnx": lambda: registry.fetch_onnx(MODEL, folder / "models"),
        "original": lambda: registry.original(MODEL, folder / "models"),
        "runnable": lambda: registry.runnable(MODEL, folder / "models"),
        "signature": lambda: registry.signature(MODEL),
        "version_tags": lambda: registry.version_tags(MODEL),
        "tag_version": lambda: registry.tag_version(MODEL, {"a": 1}),
        "experiment": lambda: registry.experiment("opmon/x"),
        "run": lambda: registry.run("1", "key", "name"),
        "new_run": lambda: registry.new_run("1", "key", "name"),
        "resume_run": lambda: registry.resume_run("0" * 32),
        "running": lambda: registry.running("1", "timeline"),
        "tagged": lambda: registry.tagged("opmon/x", {"opmon.kind": "round"}),
        "record": lambda: registry.record("0" * 32, [Point("a", 1.0, 1, NOW)]),
        "log_datasets": lambda: registry.log_datasets("0" * 32, []),
        "version_notes": lambda: registry.version_notes(MODEL),
        "untag_version": lambda: registry.untag_version(MODEL, ["a"]),
        "describe_version": lambda: registry.describe_version(MODEL, "a"),
        "model_description": lambda: registry.model_description("digits"),
        "describe_model": lambda: registry.describe_model("digits", "a"),
        "finish_run": lambda: registry.finish_run("0" * 32),
        "tag_run": lambda: registry.tag_run("0" * 32, {"a": 1}),
        "log_params": lambda: registry.log_params("0" * 32, {"a": 1}),
        "log_metrics": lambda: registry.log_metrics("0" * 32, {"a": 1.0}, 1, NOW),
        "metric_history": lambda: registry.metric_history("0" * 32, "a"),
        "log_artifact": lambda: registry.log_artifact("0" * 32, file),
        "log_artifacts": lambda: registry.log_artifacts("0" * 32, folder),
        "download": lambda: registry.download("0" * 32, "a.txt", folder / "in"),
        "files": lambda: registry.files("0" * 32),
        "remove_file": lambda: registry.remove_file("0" * 32, "a.txt"),
        "publish": lambda: registry.publish(MODEL, "opmon.reference", "opmon/x", file),
        "published": lambda: registry.published(MODEL, "opmon.reference", folder / "in"),
        "registered_at": lambda: registry.registered_at(MODEL),
        "set_alias": lambda: registry.set_alias(MODEL, "champion"),
        "remove_alias": lambda: registry.remove_alias(MODEL, "champion"),
        "run_project": lambda: registry.run_project(str(folder), "main", {}, "opmon/x", "event"),
    }


def test_calls_cover_every_method(tmp_path) -> None:
    public = {name for name in dir(MlflowRegistry) if not name.startswith("_")}
    asks_nobody = {"abilities", "address", "give_up", "local_paths", "page_of", "picture_of", "within"}
    assert set(calls(MlflowRegistry("http://127.0.0.1:9"), tmp_path)) == public - asks_nobody


@pytest.fixture
def once(monkeypatch) -> None:
    """No retries: these tests ask often."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def all_unavailable(registry: MlflowRegistry, folder: Path) -> None:
    for name, call in calls(registry, folder).items():
        with pytest.raises(RegistryUnavailable) as caught:
            call()
        assert caught.value.__cause__ is not None, name


@pytest.mark.usefixtures("once")
def test_server_that_is_not_there(tmp_path, free_port) -> None:
    all_unavailable(MlflowRegistry(f"http://127.0.0.1:{free_port}"), tmp_path)


def test_server_killed_in_the_middle(tmp_path, monkeypatch, start_server) -> None:
    server = start_server()
    registry = MlflowRegistry(server.uri)
    experiment = registry.experiment("opmon/x")
    run = registry.run(experiment, "key", "name")
    registry.resolve("models:/digits@champion")
    server.kill()
    registry._met.clear()  # what was looked up just now is known for a while
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    all_unavailable(registry, tmp_path)
    with pytest.raises(RegistryUnavailable, match="Nothing is lost"):
        registry.log_metrics(run, {"a": 1.0}, 1, NOW)


def test_server_that_is_not_there_is_told_soon(free_port) -> None:
    began = time.monotonic()
    with pytest.raises(RegistryUnavailable) as caught:
        MlflowRegistry(f"http://127.0.0.1:{free_port}").check()
    assert "cannot be reached: nobody listens there (connection refused). Nothing is lost" in str(caught.value)
    assert "Pool" not in str(caught.value), "no words of a library of the network"
    assert time.monotonic() - began < 15


@pytest.mark.usefixtures("once")
def test_a_name_that_nobody_knows_is_told(monkeypatch) -> None:
    with pytest.raises(RegistryUnavailable, match="cannot be reached: nobody knows a host of that name"):
        MlflowRegistry("http://mlflow.invalid").check()


ANSWERS = {
    "internal error": (500, "application/json", b'{"error_code": "INTERNAL_ERROR", "message": "boom"}'),
    "unavailable": (503, "text/html", b"<html>down for maintenance</html>"),
    "too many": (429, "text/plain", b"slow down"),
    "not MLflow": (404, "text/html", b"<html>no such page</html>"),
    "a page": (200, "text/html", b"<html>please log in</html>"),
    "not an object": (200, "application/json", b"[]"),
    "cut short": (200, "application/json", b'{"experiments": ['),
    "no credentials": (401, "text/plain", b"You are not authenticated."),
    "forbidden": (403, "application/json", b'{"error_code": "PERMISSION_DENIED", "message": "no"}'),
    "database locked": (
        500,
        "application/json",
        b'{"error_code": "TEMPORARILY_UNAVAILABLE", "message": "(sqlite3.OperationalError) database is locked"}',
    ),
}


@pytest.fixture
def answering() -> Iterator[Callable[[str], str]]:
    """Starts a web server that gives the same answer to everything."""
    servers = []

    def start(kind: str) -> str:
        status, content_type, body = ANSWERS[kind]

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://someone:secretword@127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("kind", ANSWERS)
def test_server_that_answers_wrongly(answering, tmp_path, kind) -> None:
    registry = MlflowRegistry(answering(kind))
    for name, call in calls(registry, tmp_path).items():
        with pytest.raises(RegistryUnavailable) as caught:
            call()
        told = "".join(traceback.format_exception(caught.value))
        assert "secretword" not in told, name


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("kind", ["no credentials", "forbidden"])
def test_server_that_refuses_says_how_to_give_credentials(answering, kind) -> None:
    with pytest.raises(RegistryUnavailable, match="MLFLOW_TRACKING_USERNAME"):
        MlflowRegistry(answering(kind)).check()


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unavailable", r"answered with the error 503 each time.*its own log tells why"),
        ("too many", r"takes no more at the moment \(429\)"),
        ("a page", r"something else answers .*page to sign in on: '<html>please log in</html>'.*MLFLOW_TRACKING_TOKEN"),
    ],
)
def test_server_that_answers_wrongly_is_told_in_words(answering, kind, words) -> None:
    with pytest.raises(RegistryUnavailable, match=words) as caught:
        MlflowRegistry(answering(kind)).resolve("models:/digits@champion")
    assert "HTTPConnectionPool" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql+psycopg://someone:secretword@127.0.0.1:1/mlflow",
        "postgresql+psycopg://someone:secretword@host.invalid/mlflow",
        "sqlite:////proc/nowhere/mlflow.db",
        "nonsense://someone:secretword@host/",
        "http://someone:secretword@127.0.0.1:1",
    ],
)
@pytest.mark.usefixtures("once")
def test_address_that_leads_nowhere_is_told_soon_and_without_the_password(uri, caplog) -> None:
    began = time.monotonic()
    with caplog.at_level(logging.DEBUG), pytest.raises(OpmonError) as caught:
        MlflowRegistry(uri).check()
    assert time.monotonic() - began < 20
    assert "secretword" not in "".join(traceback.format_exception(caught.value))
    assert "secretword" not in repr(MlflowRegistry(uri))


def test_database_server_with_a_wrong_password(postgres) -> None:
    uri = postgres().replace("postgresql+psycopg://postgres", "postgresql+psycopg://nobody")
    with pytest.raises(RegistryUnavailable):
        MlflowRegistry(uri).check()


def test_database_that_is_locked(tmp_path) -> None:
    path = tmp_path / "mlflow.db"
    registry = MlflowRegistry(f"sqlite:///{path}")
    experiment = registry.experiment("opmon/x")
    with sqlite3.connect(path, isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RegistryUnavailable, match="locked"):
            registry.run(experiment, "key", "name")
        holder.execute("ROLLBACK")
    holder.close()
    assert registry.run(experiment, "key", "name")


def test_registry_imports_mlflow_only_when_asked_and_without_telemetry() -> None:
    code = (
        "import sys, os; from opmon.registry import MlflowRegistry; MlflowRegistry('sqlite:///x.db'); "
        "assert 'mlflow' not in sys.modules; from opmon.registry.connection import prepare_environment; "
        "prepare_environment(); print(os.environ.get('MLFLOW_DISABLE_TELEMETRY'))"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "DO_NOT"))}
    for given, expected in (
        ({}, "true"),
        ({"MLFLOW_DISABLE_TELEMETRY": "false"}, "false"),
        ({"DO_NOT_TRACK": "false"}, "None"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env=clean | given, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
