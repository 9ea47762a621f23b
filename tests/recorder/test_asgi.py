"""Requests and answers are recorded, and pass as if nobody looked."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.testclient import TestClient

import opmon
from opmon.errors import InputError
from opmon.recorder.asgi import RecordRequests
from tests.patience import until


def app() -> FastAPI:
    made = FastAPI()

    @made.post("/predict")
    def predict(body: dict[str, Any], request: Request) -> dict[str, Any]:
        return {"prediction": body["x"] * 2, "scores": [0.5, 0.5], "key": request.scope["opmon.id"]}

    @made.post("/plain")
    async def plain(request: Request) -> Any:
        await request.body()
        return PlainTextResponse("words")

    @made.post("/refuse")
    def refuse() -> Any:
        return JSONResponse({"error": "no"}, 422)

    @made.post("/fail")
    def fail() -> Any:
        raise RuntimeError("no")

    @made.post("/stream")
    async def stream(request: Request) -> Any:
        sent: list[bytes] = [chunk async for chunk in request.stream()]

        def chunks() -> Iterator[bytes]:
            yield b'{"prediction": '
            yield json.dumps(len(b"".join(sent))).encode()
            yield b"}"

        return StreamingResponse(chunks(), media_type="application/json")

    @made.post("/other")
    def other() -> dict[str, Any]:
        return {}

    return made


PATHS = ["/predict", "/plain", "/refuse", "/fail", "/stream*"]


@pytest.fixture
def client(recorder: opmon.Recorder) -> Iterator[TestClient]:
    with TestClient(RecordRequests(app(), recorder, PATHS, max_bytes=2000, id_header="X-Request-ID")) as made:
        yield made


def test_a_request_is_an_input_and_its_answer_the_prediction(client: TestClient, recorder: Any, left: Any) -> None:
    answer = client.post("/predict", json={"x": 2})
    client.post("/predict", json={"x": 3}, headers={"x-request-id": "theirs"})
    client.post("/other", json={"x": 4})
    recorder.close()

    rows = left.table().select(["id", "x", "prediction", "scores"]).to_pylist()
    assert rows == [
        {"id": answer.json()["key"], "x": 2, "prediction": 4, "scores": [0.5, 0.5]},
        {"id": "theirs", "x": 3, "prediction": 6, "scores": [0.5, 0.5]},
    ]


def test_only_what_was_answered_well_is_recorded(client: TestClient, recorder: Any, left: Any) -> None:
    assert client.post("/refuse", json={}).status_code == 422
    with pytest.raises(RuntimeError):
        client.post("/fail", json={})
    assert client.post("/plain", json=[1.0]).text == "words"
    recorder.close()

    assert left.table().select(["features", "prediction"]).to_pylist() == [{"features": [1.0], "prediction": None}]


def test_streams_pass_chunk_by_chunk_and_large_ones_are_counted(client: TestClient, recorder: Any, left: Any) -> None:
    def body(chunks: int) -> Iterator[bytes]:
        yield b'"'
        for _ in range(chunks):
            yield b"x" * 100
        yield b'"'

    assert client.post("/stream", content=body(5)).json() == {"prediction": 502}
    assert client.post("/stream", content=body(50)).json() == {"prediction": 5002}
    recorder.close()

    assert left.table().select(["text", "prediction"]).to_pylist() == [{"text": "x" * 500, "prediction": 502}]
    assert recorder.stats().dropped == {"too_large": 1}


def test_what_is_no_json_is_counted(client: TestClient, recorder: Any, left: Any) -> None:
    client.post("/plain", content=b"{")
    client.post("/plain", content=b"[" * 1900)
    client.post("/plain", json={"x": 1})
    recorder.close()
    assert left.counts() == (3, 1, 2)


def test_a_function_says_what_is_recorded(left: Any) -> None:
    def read(request: Any, response: Any) -> dict[str, Any]:
        return {"inputs": request["x"], "prediction": response["prediction"], "at": 1.5e9, "model_version": 7, "id": 8}

    with opmon.Recorder(
        str(left.folder), sample={"keep": 5, "every": "1m", "by": lambda x, p, s: x["input"]}
    ) as recorder:
        client = TestClient(RecordRequests(app(), recorder, read=read))
        for _ in range(2):
            client.post("/predict", json={"x": 3})

    row = left.table().to_pylist()[0]
    assert (row["id"], row["input"], row["prediction"], row["model_version"]) == ("8", 3, 6, "7")
    assert row["timestamp"].year == 2017
    assert left.told()[-1]["windows"][0]["weight"] == 6


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD"])
def test_what_only_asks_what_is_there_is_no_input(recorder: Any, left: Any, method: str) -> None:
    inner = app()
    inner.add_api_route("/predict", lambda: {}, methods=["HEAD"])
    inner.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"])
    asking = {"origin": "https://shop.example.com", "access-control-request-method": "POST"}
    with TestClient(RecordRequests(inner, recorder, PATHS)) as browser:
        assert browser.request(method, "/predict", headers=asking).status_code == 200
        browser.post("/predict", json={"x": 2})
    recorder.close()
    assert left.counts() == (1, 1, 0)


def test_paths_are_a_list(recorder: opmon.Recorder) -> None:
    with pytest.raises(InputError, match=r"paths is a list of paths.*got '/predict'"):
        RecordRequests(app(), recorder, "/predict")  # type: ignore[arg-type]


def test_what_waits_is_written_when_the_application_shuts_down(recorder: opmon.Recorder, left: Any) -> None:
    with TestClient(RecordRequests(app(), recorder)) as client:
        client.post("/predict", json={"x": 1})
    assert recorder.stats().written == 1


SERVED = """
import pathlib, time, opmon
from fastapi import FastAPI
recorder = opmon.Recorder({folder!r}, exit_seconds=120)
app = FastAPI()
here = pathlib.Path(__file__).parent

@app.post("/predict")
def predict(body: dict):
    if body["slow"]:
        (here / "begun").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
    return {{"id": recorder.record(body, prediction=1)}}
"""


def test_under_uvicorn_sigterm_loses_no_answer(tmp_path: Path, left: Any) -> None:
    (tmp_path / "served.py").write_text(SERVED.format(folder=str(left.folder)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "served:app", "--port", str(port), "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=tmp_path)

    def asked(slow: bool) -> str:
        answer = httpx.post(f"http://127.0.0.1:{port}/predict", json={"slow": slow}, timeout=60)
        return str(answer.json()["id"])

    try:
        until(lambda: accepts(port))
        keys = [asked(slow=False) for _ in range(10)]
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(asked, slow=True)
            until((tmp_path / "begun").exists)
            server.send_signal(signal.SIGTERM)
            until(lambda: not accepts(port))
            (tmp_path / "go").touch()
            keys.append(slow.result())
        assert server.wait(30) == -signal.SIGTERM
    finally:
        server.kill()
        server.wait()
    assert sorted(left.table()["id"].to_pylist()) == sorted(keys)


def accepts(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
