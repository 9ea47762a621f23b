"""Probes and metrics tell what is so, to those who may know it, and the documents tell every metric."""

from __future__ import annotations

import re
import resource
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import opmon
from opmon.errors import RegistryUnavailable
from opmon.health.health import Health
from opmon.health.server import HealthServer
from opmon.queries.gauges import Gauges
from opmon.queries.monitors import monitor_view
from opmon.store import cycles, ticks, workers
from opmon.store.engine import Store, connect
from opmon.store.workers import Busy, Worker
from tests.databases import Postgres
from tests.patience import until
from tests.web.world import World, monitor

SECRET = "0123456789abcdef-metrics"


@pytest.fixture
def world(sqlite: str, tmp_path: Path) -> World:
    made = World.of(sqlite, tmp_path, {name: monitor(schedule={"every": "10m"}) for name in ("digits", "faces")})
    made.ask("digits", [{"age": 1}, {"age": 2}])
    return made


def note(world: World, name: str, minutes_ago: float, *, succeeded: bool = True) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    with world.store.write() as connection:
        ticks.claim(connection, name, at, None)
        cycles.record(connection, name, cycles.End(at, succeeded, not succeeded, seconds=1.5))


def health_of(world: World, **more: Any) -> Health:
    return Health(world.settings, world.store, "worker", **more)


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_metrics_tell_what_the_database_holds(world: World) -> None:
    note(world, "digits", 1)
    note(world, "digits", 0.5, succeeded=False)
    note(world, "faces", 90)
    told = samples(health_of(world).metrics()[0].decode())
    assert told["opmon_inputs_received_total"] == {("digits",): 2, ("faces",): 0}
    assert told["opmon_labels_waiting"] == {("digits",): 2, ("faces",): 0}
    assert told["opmon_rounds"]["digits", "labelling"] == 1
    assert told["opmon_cycles_total"]["digits", "failed"] == 1
    assert told["opmon_cycle_duration_seconds_sum"]["digits",] == 3
    assert told["opmon_monitor_silent"] == {("digits",): 0, ("faces",): 1}
    assert told["opmon_build_info"] == {(opmon.__version__,): 1}


def test_the_documents_tell_every_metric_and_no_other() -> None:
    import opmon.health.exposition as exposition

    text = (Path(opmon.__file__).parent / "docs" / "operations.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `opmon_")]
    documented = {name for row in rows for name in re.findall(r"`(opmon_[a-z_]+)`", row.split("|")[1])}
    source = Path(exposition.__file__).read_text()
    made = set()
    for kind, name in re.findall(r'(\w+)MetricFamily\(\s*f?"(opmon_[a-z_{}]+)"', source):
        suffix = {"Counter": "_total", "Info": "_info"}.get(kind, "")
        if name == "opmon_accuracy_{what}ratio":
            made |= {name.replace("{what}", what) for what in ("", "lower_", "upper_")}
        elif name == "opmon_last_{kind}_timestamp_seconds":
            made |= {name.replace("{kind}", kind_) for kind_ in ("begun", "cycle", "success", "estimate")}
        else:
            made.add(name + suffix)
    assert documented == made


def test_who_is_late_is_told_and_named_only_to_those_who_may_know(world: World) -> None:
    health = health_of(world)
    assert health.ready()[0], "nothing has begun yet"
    note(world, "digits", 1)
    note(world, "faces", 90)
    good, told = health.ready(names=True)
    assert not good
    assert told["reasons"] == ["1 monitor silent: faces"]
    assert "faces" not in str(health.ready()[1])
    assert health.ready(["monitors"])[0]
    assert health.alive(names=True) == (True, {"status": "ok", "silent": ["faces"]})
    note(world, "faces", 1, succeeded=False)
    note(world, "digits", 1, succeeded=False)
    assert health.ready(names=True)[1]["reasons"] == ["1 monitor without a success: faces"]


def test_a_registry_that_does_not_answer_is_a_reason(world: World) -> None:
    def down() -> str:
        raise RegistryUnavailable("MLflow did not answer")

    assert health_of(world, registry=down).ready()[1]["reasons"] == ["MLflow did not answer"]


def test_a_standstill_is_the_end_of_health(world: World) -> None:
    health = health_of(world, standstill=lambda: "nothing moves")
    assert health.alive() == (False, {"status": "failing", "reasons": ["nothing moves"]})


def test_a_worker_answers_at_an_address_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from opmon.errors import DatabaseUnavailable

    own = world.settings.metrics.model_copy(update={"listen": "127.0.0.1:0"})
    health = health_of(world)
    health.settings = world.settings.model_copy(update={"metrics": own})
    with (
        HealthServer(health) as server,
        httpx.Client(base_url="http://{}:{}".format(*server.address)) as client,
    ):
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").status_code == 200
        assert samples(client.get("/metrics").text)["opmon_database_up"] == {(): 1}
        assert client.get("/elsewhere").status_code == 404
        assert client.post("/metrics").status_code == 404

        def down(*_: object) -> None:
            raise DatabaseUnavailable("it is down")

        monkeypatch.setattr(Store, "_transaction", down)
        assert client.get("/readyz").status_code == 503
        assert samples(client.get("/metrics").text)["opmon_database_up"] == {(): 0}
        assert client.get("/healthz").status_code == 200


def test_with_the_pages_metrics_are_for_those_who_see_all_monitors(world: World) -> None:
    with world.served() as server, httpx.Client(base_url=server.url) as client:
        assert "opmon_rounds" in client.get("/metrics").text, "while nobody has a token, this machine may ask"
        assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 403
        tokens = {role: world.invite(role, role) for role in ("annotator", "viewer")}
        tokens["some"] = world.invite("some", "viewer", ["digits"])
        refused = [client.get("/metrics", headers={"authorization": f"Bearer {tokens[each]}"}) for each in tokens]
        assert [answer.status_code for answer in refused] == [403, 200, 403]
        assert client.get("/readyz").status_code == 200


def test_the_token_of_the_metrics_opens_them_alone(sqlite: str, tmp_path: Path) -> None:
    world = World.of(sqlite, tmp_path)
    from pydantic import SecretStr

    own = world.settings.metrics.model_copy(update={"listen": "127.0.0.1:0", "token": SecretStr(SECRET)})
    health = health_of(world)
    health.settings = world.settings.model_copy(update={"metrics": own})
    with (
        HealthServer(health) as server,
        httpx.Client(base_url="http://{}:{}".format(*server.address)) as client,
    ):
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics", headers={"authorization": f"Bearer {SECRET}"}).status_code == 200


def test_gauges_need_few_queries_for_many_monitors(world: World) -> None:
    import sqlalchemy as sa

    from opmon.queries.gauges import gauges

    counted = []
    sa.event.listen(world.store.engine, "before_cursor_execute", lambda *_: counted.append(1))
    with world.store.read() as connection:
        found = gauges(connection, [each.watch for each in world.settings.monitors.values()], datetime.now(UTC))
    assert [type(each) for each in found] == [Gauges] * 2
    assert len(counted) <= 30


def test_a_database_that_never_answers_keeps_no_probe_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opmon.health.health.ASK_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = connect(f"postgresql+psycopg://me@127.0.0.1:{silent.getsockname()[1]}/opmon")
        health = Health(world.settings, store, "worker")
        begun = time.monotonic()
        assert health.alive() == (True, {"status": "ok"})
        good, told = health.ready()
        assert (good, told["reasons"]) == (False, ["the database does not answer"])
        assert samples(health.metrics()[0].decode())["opmon_database_up"] == {(): 0}
        assert time.monotonic() - begun < 8, "nobody waited for the 10 s that a connection may take"


def test_what_a_monitor_is_stuck_at_is_told_to_those_who_may_know(world: World) -> None:
    note(world, "digits", 1)
    now = datetime.now(UTC)
    at = Busy(
        "opening rounds, waiting for the source s3://logs", now - timedelta(minutes=9), now - timedelta(minutes=3)
    )
    said = Worker("a", "process 7 on box", "worker", "1", now, now, {"digits": at}, {"s3://logs": 9.0})
    with world.store.write() as connection:
        workers.say(connection, said)
    health = health_of(world, stuck=lambda: {"digits": at.stage})
    assert health.alive()[1] == {"status": "ok", "stuck": 1}
    assert health.alive(names=True)[1]["stuck"] == {"digits": at.stage}
    told = samples(health.metrics()[0].decode())
    assert 175 < told["opmon_cycle_stuck_seconds"]["digits",] < 240
    assert told["opmon_breaker_open_workers"]["s3://logs",] == 1
    assert told["opmon_waits_given_up_total"]["source",] >= 0
    with world.store.read() as connection:
        view = monitor_view(connection, world.settings.monitor("digits").watch, now, shown=1)
    (need,) = [need.message for need in view.needs if need.kind == "hangs"]
    assert need.startswith("process 7 on box has been at opening rounds, waiting for the source s3://logs, since")


def test_beside_the_pages_a_process_lives_whatever_its_database_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opmon.errors import DatabaseUnavailable

    def down(*_: object) -> None:
        raise DatabaseUnavailable("it is down")

    with world.served() as server, httpx.Client(base_url=server.url) as client:
        monkeypatch.setattr(Store, "_transaction", down)
        assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (200, {"status": "ok"})
        told = client.get("/readyz", headers={"authorization": "Bearer anything"})
        assert (told.status_code, told.json()["reasons"]) == (503, ["the database does not answer"])
        assert client.get("/metrics").status_code == 503, "nobody knows who may read them"


def test_a_database_that_answers_but_takes_no_writes_is_not_ready(world: World) -> None:
    health = health_of(world)
    assert health.ready()[0]
    path = world.store.engine.url.database
    standing = connect(f"sqlite:///file:{path}?mode=ro&uri=true")
    good, told = Health(world.settings, standing, "web").ready()
    assert not good
    assert told["reasons"] == ["the database: it cannot be written. Give opmon's user the right to write the file and "
                               "its folder."]  # fmt: skip
    assert str(path) not in str(told)


def test_a_full_disk_is_not_ready(world: World) -> None:
    """The size of files is bounded for a moment: a disk cannot be filled here."""
    health = health_of(world)
    with world.store.read() as connection:
        connection.exec_driver_sql("SELECT 1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        good, told = health.ready()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not good
    assert "is full" in str(told["reasons"])
    assert Health(world.settings, world.store, "web").ready()[0], "as soon as there is room"


def test_a_standby_is_not_ready_and_the_server_s_own_setting_is_not_either(
    postgres: Callable[[], str], tmp_path: Path
) -> None:
    url = postgres()
    made = World.of(url, tmp_path, {"digits": monitor()})
    assert Health(made.settings, made.store, "web").ready()[0]
    name = made.store.engine.url.database
    with made.store.write() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    made.store.engine.dispose()
    good, told = Health(made.settings, made.store, "web").ready()
    assert not good
    assert told["reasons"][0].startswith("the database: it takes no writes now: it is a standby, or ")  # type: ignore[index,union-attr]


def test_a_write_that_never_ends_is_not_ready(
    postgresql: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standby that each commit waits for is gone; what is only asked for is answered all the same."""
    made = World.of(postgresql.new(), tmp_path, {"digits": monitor()})
    monkeypatch.setattr("opmon.health.health.ASK_SECONDS", 0.5)

    def reasons() -> Any:
        return Health(made.settings, made.store, "web").ready()[1].get("reasons")

    with postgresql.setting("synchronous_standby_names", "gone"):
        assert reasons() is None, "another may write for long"
        monkeypatch.setattr("opmon.health.health.HUNG_SECONDS", 0.5)
        until(reasons)  # the server takes the setting over when it comes to it
        assert re.fullmatch(r"the database answers, but a write has not ended for \d+ s", reasons()[0])
    until(lambda: reasons() is None)


def test_writing_is_not_tried_with_every_question(world: World) -> None:
    health = health_of(world)
    health.ready()
    with world.store.write():
        assert health.ready()[0], "it took a write just now"
        assert Health(world.settings, world.store, "web").ready()[0], "another writes for long"
    with world.store.read() as connection:
        assert workers.known(connection) == []
