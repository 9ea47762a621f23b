"""The suite that every registry passes: what is asked again is not doubled, and what is kept comes back."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from opmon.abc import Registry
from opmon.errors import InputError, NotFoundError
from opmon.types import ModelVersion, Signature

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def check_registry(registry: Registry, uri: str, folder: Path) -> None:
    """A registry that holds an ONNX model at ``uri``; what it hands out is written below ``folder``.

    Runs and tags of the suite stay in the registry: give it one of its own.
    """
    assert isinstance(registry, Registry), f"{type(registry).__name__} does not subclass opmon.abc.Registry"
    assert registry.address.strip(), "address is empty"
    assert len(registry.check().splitlines()) == 1, "check() gives one line"
    model = _resolves(registry, uri)
    _fetches(registry, model, folder / "models")
    _tags(registry, model)
    if "move aliases" in registry.abilities:
        _moves_aliases(registry, model)
    run = _opens_runs(registry)
    _keeps_numbers(registry, run, model)
    _keeps_files(registry, run, folder / "files")
    _publishes(registry, model, folder / "published")


def _resolves(registry: Registry, uri: str) -> ModelVersion:
    model = registry.resolve(uri)
    assert registry.resolve(model.uri) == model, f"resolve({model.uri!r}) is not what resolve({uri!r}) gave"
    assert model.uri == f"models:/{model.name}/{model.version}"
    for missing in (f"models:/{model.name}/987654321", f"models:/no-{uuid.uuid4().hex}/1"):
        _refused(NotFoundError, partial(registry.resolve, missing), f"resolve({missing!r})")
    _refused(InputError, partial(registry.resolve, "no address"), "resolve('no address')")
    return model


def _fetches(registry: Registry, model: ModelVersion, into: Path) -> None:
    import onnx

    path = registry.fetch_onnx(model, into)
    assert onnx.load(str(path)).graph.output, f"{path} is no ONNX model"
    written = path.stat().st_mtime_ns
    again = registry.fetch_onnx(model, into)
    assert (again, again.stat().st_mtime_ns) == (path, written), "fetch_onnx() copies the same version again"
    signature = registry.signature(model)
    assert signature is None or isinstance(signature, Signature), "signature() gives a Signature, or None"
    registered = registry.registered_at(model)
    assert registered.tzinfo is not None, "registered_at() carries no time zone"
    assert registered < datetime.now(UTC) + timedelta(days=1), "the model was registered in the future"


def _tags(registry: Registry, model: ModelVersion) -> None:
    registry.tag_version(model, {"opmon.suite.first": 1, "opmon.suite.second": "two"})
    registry.tag_version(model, {"opmon.suite.first": 1.5})
    tags = registry.version_tags(model)
    found = {key: tags.get(key) for key in ("opmon.suite.first", "opmon.suite.second")}
    assert found == {"opmon.suite.first": "1.5", "opmon.suite.second": "two"}, f"version_tags() gave {found}"


def _moves_aliases(registry: Registry, model: ModelVersion) -> None:
    address = f"models:/{model.name}@suite"
    for _ in range(2):
        registry.set_alias(model, "suite")
    assert registry.resolve(address) == model, "set_alias() does not make the alias mean the version"
    for _ in range(2):
        registry.remove_alias(model, "suite")
    _refused(NotFoundError, partial(registry.resolve, address), "resolve() of an alias that was removed")


def _opens_runs(registry: Registry) -> str:
    experiment = registry.experiment(f"opmon/suite-{uuid.uuid4().hex[:8]}")
    parent = registry.run(experiment, "suite/v1", "v1", tags={"opmon.kind": "timeline"})

    def open_run(_: int) -> str:
        return registry.run(experiment, "suite/round/1", "round 1", parent=parent, tags={"opmon.round": 1})

    run = open_run(0)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(open_run, range(4))) == {run}, "a key asked for again makes another run"
    assert run != parent, "two keys share a run"
    other = registry.experiment(f"opmon/suite-{uuid.uuid4().hex[:8]}")
    assert registry.run(other, "suite/round/1", "round 1") != run, "two experiments share a run"
    _refused(InputError, partial(registry.run, experiment, "", "no key"), "run() without a key")
    registry.tag_run(run, {"opmon.suite": "yes"})
    registry.log_params(run, {"sampler": "srs", "budget": 100})
    registry.log_params(run, {"sampler": "other"})
    for _ in range(2):
        registry.finish_run(run)
    assert open_run(0) == run, "a run that ended is made again"
    return run


def _keeps_numbers(registry: Registry, run: str, model: ModelVersion) -> None:
    later = NOW + timedelta(hours=1)
    assert registry.metric_history(run, "accuracy/low") == [], "a metric of nobody has a history"
    for _ in range(2):
        values = {"accuracy/low": 0.75, "none": None, "nan": math.nan, "infinite": math.inf}
        registry.log_metrics(run, values, 2, later, model=model)
    registry.log_metrics(run, {"accuracy/low": 0.5}, 1, NOW)
    history = registry.metric_history(run, "accuracy/low")
    assert history == [(1, NOW, 0.5), (2, later, 0.75)], f"metric_history() gave {history}"
    for left_out in ("none", "nan", "infinite"):
        assert registry.metric_history(run, left_out) == [], f"a number that is {left_out} was kept"


def _keeps_files(registry: Registry, run: str, folder: Path) -> None:
    source = folder / "source"
    (source / "inner").mkdir(parents=True)
    first, inner = source / "first.txt", source / "inner" / "second.txt"
    first.write_text("old")
    registry.log_artifact(run, first)
    first.write_text("new")
    inner.write_text("inside")
    registry.log_artifact(run, first)
    registry.log_artifacts(run, source, "all")
    for number, (path, expected) in enumerate(
        (("first.txt", "new"), ("all/first.txt", "new"), ("all/inner/second.txt", "inside"))
    ):
        found = registry.download(run, path, folder / str(number)).read_text()
        assert found == expected, f"download({path!r}) gave {found!r}, and {expected!r} was kept"
    whole = registry.download(run, "all", folder / "whole")
    assert (whole / "inner" / "second.txt").read_text() == "inside", "download() of a folder lacks what is in it"
    _refused(NotFoundError, partial(registry.download, run, "nothing.txt", folder / "none"), "download() of no file")
    _refused(InputError, partial(registry.download, run, "../first.txt", folder / "none"), "download('../first.txt')")
    if "remove files" in registry.abilities:
        _removes_files(registry, run)


def _removes_files(registry: Registry, run: str) -> None:
    kept = dict(registry.files(run))
    for path, size in (("first.txt", 3), ("all/first.txt", 3), ("all/inner/second.txt", 6)):
        assert kept.get(path) == size, f"files() says {kept.get(path)} bytes for {path}, which has {size}"
    for path in ("first.txt", "all/inner/second.txt"):
        for _ in range(2):
            registry.remove_file(run, path)
        del kept[path]
    assert registry.files(run) == kept, "remove_file() left the file, or took another"
    _refused(InputError, partial(registry.remove_file, run, "../first.txt"), "remove_file('../first.txt')")


def _publishes(registry: Registry, model: ModelVersion, folder: Path) -> None:
    tag, path = "opmon.suite.file", folder / "reference.npz"
    assert registry.published(model, tag, folder / "into") is None, "a file is published that nobody published"
    path.parent.mkdir(parents=True)
    for content in (b"first", b"second"):
        path.write_bytes(content)
        registry.publish(model, tag, "opmon/suite", path)
    found = registry.published(model, tag, folder / "into")
    assert found is not None, "publish() left no tag by which published() finds the file"
    assert found.read_bytes() == b"second", "published() gives an earlier file"


def _refused(error: type[Exception], ask: Callable[[], object], what: str) -> None:
    try:
        ask()
    except error:
        return
    raise AssertionError(f"{what} is no {error.__name__}")
