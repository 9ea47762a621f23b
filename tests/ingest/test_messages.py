"""What the bodies of requests hold, whoever sends them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from opmon.ingest.event import Kind
from opmon.ingest.messages import events_of
from opmon.ingest.refused import Refused

AT = "2026-03-01T12:00:00+00:00"
KSERVE = {
    "ce-specversion": "1.0",
    "ce-id": "a1",
    "ce-source": "http://localhost:9081/",
    "ce-time": "2026-03-01T13:00:00+02:00",
    "content-type": "application/json",
}
REQUEST, RESPONSE = "org.kubeflow.serving.inference.request", "org.kubeflow.serving.inference.response"


def events(body: object, kind: str = "application/json", **headers: str) -> list[Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return events_of({"content-type": kind, **headers}, raw, AT)


def test_a_pair_of_kserve_has_one_name() -> None:
    payload = {"instances": [[1, 2]]}
    first, second = (
        events_of({**KSERVE, "ce-type": kind}, json.dumps(payload).encode(), AT)[0] for kind in (REQUEST, RESPONSE)
    )
    assert (first.kind, second.kind) == (Kind.REQUEST, Kind.RESPONSE)
    assert first.name == second.name
    assert first.id == "a1"
    assert first.at == "2026-03-01T11:00:00+00:00"
    assert json.loads(first.body) == payload


def test_a_pair_of_seldon_is_known_by_its_request_and_its_model() -> None:
    def event(kind: str, number: str, model: str) -> Any:
        told = {"ce-type": f"io.seldon.serving.inference.{kind}", "ce-id": number, "ce-requestid": "r7"}
        return events_of({**KSERVE, **told, "ce-modelid": model}, b'{"data": {"ndarray": [[1]]}}', AT)[0]

    request, response, other = event("request", "1", "a"), event("response", "2", "a"), event("request", "3", "b")
    assert request.name == response.name != other.name
    assert request.id == "r7"


def test_cloud_events_come_as_json_one_or_many() -> None:
    event = {"specversion": "1.0", "type": "row", "source": "s", "id": "1", "data": {"age": 3}}
    encoded = {**event, "id": "2"} | {"data_base64": base64.b64encode(b'{"age": 4}').decode()}
    del encoded["data"]
    assert [each.body for each in events(event, "application/cloudevents+json; charset=utf-8")] == ['{"age":3}']
    found = events([event, encoded], "application/cloudevents-batch+json")
    assert [(each.id, json.loads(each.body)) for each in found] == [("1", {"age": 3}), ("2", {"age": 4})]


def test_plain_json_is_rows_requests_or_pairs() -> None:
    v2 = {"id": "v", "inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}
    found = events([{"age": 3}, {"id": 7, "age": 4}, v2, {"id": "p", "request": v2, "response": {"outputs": []}}])
    assert [each.kind for each in found] == [Kind.ROW, Kind.ROW, Kind.REQUEST, Kind.REQUEST, Kind.RESPONSE]
    assert [each.name for each in found] == ["", "7", "v", "p", "p"]
    assert len(found[0].id) == 32
    assert [each.kind for each in events(b'{"a": 1}\n\n{"a": 2}\n', "application/x-ndjson")] == [Kind.ROW] * 2


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2026-02-01T08:00:00Z", "2026-02-01T08:00:00+00:00"),
        ("2026-02-01T08:00:00", "2026-02-01T08:00:00+00:00"),
        (1769932800, "2026-02-01T08:00:00+00:00"),
        ("soon", AT),
        (float("nan"), AT),
    ],
)
def test_a_pair_that_is_sent_later_is_of_its_own_time(told: object, at: str) -> None:
    pair = {"id": "a1", "request": {"instances": [[1]]}, "response": {"predictions": [1]}, "timestamp": told}
    assert [event.at for event in events(pair)] == [at, at]


def test_a_sender_may_name_the_request_where_rows_have_no_ids() -> None:
    found = events([{"a": 1}, {"a": 2}], **{"idempotency-key": "k"})
    assert [(each.name, each.id) for each in found] == [("k#0", "k#0"), ("k#1", "k#1")]


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b"", "application/json", 400, "empty"),
        (b"{", "application/json", 400, "not JSON"),
        (b'{"a": "\xff"}', "application/json", 400, "UTF-8"),
        (b"[" * 30_000, "application/json", 400, "levels"),
        (b'{"a": ' * 30_000, "application/x-ndjson", 400, "levels"),
        (b'{"a": "\\ud800"}', "application/json", 400, "surrogate"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "application/json", 400, "not JSON"),
        (b"3", "application/json", 400, "a row is an object"),
        (b"[[1, 2]]", "application/json", 400, "a row is an object"),
        (b"{}", "application/json", 400, "a row is an object"),
        (b'{"id": "' + b"x" * 600 + b'"}', "application/json", 400, "characters"),
        (b"a=1", "application/x-www-form-urlencoded", 415, "content-type"),
        (b"<a/>", "", 415, "content-type"),
        (b'{"type": "row"}', "application/cloudevents+json", 400, "no data"),
        (b'{"type": "row", "data": {}}', "application/cloudevents+json", 400, "specversion"),
        (b"[3]", "application/cloudevents-batch+json", 400, "object"),
    ],
)
def test_what_is_wrong_is_refused_in_words(body: bytes, kind: str, status: int, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        events(body, kind)
    assert refused.value.status == status


def test_what_is_binary_is_refused() -> None:
    told = {**KSERVE, "ce-type": REQUEST, "content-type": "application/octet-stream"}
    with pytest.raises(Refused, match="octet-stream"):
        events_of(told, b"\x00", AT)


def test_many_brackets_beside_each_other_are_no_depth() -> None:
    body = {"request": {"instances": [[1.0, 2.0]] * 500}}
    assert len(events(body)) == 1
    assert len(events({"text": "[" * 1000})) == 1


def test_nan_is_a_number() -> None:
    assert events(b'{"a": NaN}')[0].body == '{"a":NaN}'
