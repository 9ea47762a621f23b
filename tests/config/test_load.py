from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from opmon import config
from opmon.config import Settings, load, render_example, without_password
from opmon.config.part import Part
from opmon.decisions.accuracy_below import AccuracyBelow
from opmon.decisions.accuracy_level import AccuracyLevel
from opmon.errors import ConfigError, NotFoundError
from opmon.scoring.devices import Providers

MINIMAL = "monitors:\n  digits:\n    model: models:/digits@champion\n    source: {path: production/}\n"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "opmon.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_minimal_monitor_has_defaults(write) -> None:
    settings = load(write(MINIMAL), {})
    monitor = settings.monitor("digits")
    assert (monitor.name, monitor.problem, monitor.device, monitor.level) == ("digits", "classification", "auto", 0.95)
    assert (monitor.sampler.type, monitor.sampler.budget) == ("adaptive", 100)
    assert monitor.round.max_age == timedelta(hours=1)
    assert monitor.labels.max_wait == timedelta(days=7)
    assert monitor.schedule.every == timedelta(minutes=10)
    assert [action.type for action in monitor.actions] == ["registry_tag"]


def test_relative_paths_start_at_the_folder_of_the_file(write, tmp_path: Path) -> None:
    settings = load(write(MINIMAL + "mlflow: {registry_uri: ./store}\n"), {})
    assert settings.database.get_secret_value() == f"sqlite:///{tmp_path}/opmon.db"
    assert settings.mlflow.tracking_uri.get_secret_value() == f"sqlite:///{tmp_path}/mlflow.db"
    assert settings.mlflow.registry_uri is not None
    assert settings.mlflow.registry_uri.get_secret_value() == f"{tmp_path}/store"
    assert settings.state == tmp_path / ".opmon"
    assert settings.monitors["digits"].source.parameters["path"] == f"{tmp_path}/production/"


@pytest.mark.parametrize(
    ("given", "meant"),
    [("photos/", "{here}/photos"), ("file:///data/photos", "/data/photos"), ("s3a://shop/photos/", "s3://shop/photos")],
)
def test_pictures_may_be_in_a_folder_or_a_store(write, tmp_path: Path, given: str, meant: str) -> None:
    text = MINIMAL + f"    inputs: {{image: {{column: photo, folder: '{given}'}}}}\n"
    image = load(write(text), {}).monitors["digits"].inputs.image
    assert image is not None
    assert str(image.folder) == meant.format(here=tmp_path)


@pytest.mark.parametrize("uri", ["databricks", "https://mlflow.example.com", "s3://bucket/x", "sqlite:////abs/m.db"])
def test_an_address_elsewhere_is_left_alone(uri: str) -> None:
    settings = Settings.from_mapping({**yaml.safe_load(MINIMAL), "mlflow": {"tracking_uri": uri}}, environment={})
    assert settings.mlflow.tracking_uri.get_secret_value() == uri


def test_a_postgresql_address_names_the_driver_that_opmon_installs() -> None:
    settings = Settings.from_mapping({**yaml.safe_load(MINIMAL), "database": "postgresql://u@h/d"}, environment={})
    assert settings.database.get_secret_value() == "postgresql+psycopg://u@h/d"


def test_regression_draws_at_random_by_default() -> None:
    mapping = yaml.safe_load(MINIMAL)
    mapping["monitors"]["digits"]["problem"] = "regression"
    assert Settings.from_mapping(mapping, environment={}).monitors["digits"].sampler.type == "srs"


def test_plugins_are_made_when_the_file_is_read(write) -> None:
    text = MINIMAL + "    rules: [{type: accuracy_below, threshold: 0.9, name: floor}]\n"
    rule = load(write(text), {}).monitors["digits"].rules[0]
    assert rule.plugin == AccuracyBelow(threshold=0.9, name="floor")
    assert rule.name == "floor"


def test_a_device_may_be_providers_with_options() -> None:
    mapping = yaml.safe_load(MINIMAL)
    given = {"providers": ["tensorrt", "cuda"], "options": {"cuda": {"device_id": 1, "use_tf32": True}}}
    mapping["monitors"]["digits"]["device"] = given
    settings = Settings.from_mapping(mapping, environment={})
    runs_on = settings.monitors["digits"].runs_on
    assert runs_on == Providers.of(given["providers"], given["options"])
    assert runs_on.options_of("CUDAExecutionProvider")["use_tf32"] == "1"
    dumped = settings.dump()["monitors"]["digits"]["device"]
    assert dumped == given


def test_classes_may_be_whole_numbers() -> None:
    mapping = yaml.safe_load(MINIMAL)
    mapping["monitors"]["digits"]["classes"] = [0, 1, "two"]
    assert Settings.from_mapping(mapping, environment={}).monitors["digits"].classes == ("0", "1", "two")


def test_a_key_with_nothing_after_it_means_its_default(write) -> None:
    keys = (
        "round",
        "labels",
        "rules",
        "actions",
        "drift",
        "schedule",
        "inputs",
        "columns",
        "sampler",
        "level",
        "device",
    )
    empty = "".join(f"    {key}:\n" for key in keys) + "mlflow:\ndatabase:\nstate:\n"
    assert load(write(MINIMAL + empty), {}).dump() == load(write(MINIMAL), {}).dump()


def test_classes_may_be_told_with_what_else_they_are_called() -> None:
    mapping = yaml.safe_load(MINIMAL)
    mapping["monitors"]["digits"]["classes"] = {"paid": 0.0, "default": [1, "late"], "open": None}
    monitor = Settings.from_mapping(mapping, environment={}).monitors["digits"]
    assert monitor.class_names == ("paid", "default", "open")
    assert monitor.spellings.names == {"0": "paid", "1": "default", "late": "default"}
    mapping["monitors"]["digits"] |= {"classes": monitor.model_dump(mode="json")["classes"]}
    assert Settings.from_mapping(mapping, environment={}).monitors["digits"].spellings == monitor.spellings


def test_variables_may_be_columns_of_the_log(tmp_path: Path) -> None:
    mapping = yaml.safe_load(MINIMAL)
    mapping["monitors"]["digits"] |= {
        "scoring": {"by": "flavor", "trust": True, "env": "envs/bin/python", "memory": "2 GB"},
        "variables": {"risk": "score", "doubt": {"column": "sure", "suspicious": "low"}},
        "sampler": {"type": "sups", "variable": "risk"},
    }
    monitor = Settings.from_mapping(mapping, tmp_path, environment={}).monitors["digits"]
    assert {name: head.columns for name, head in monitor.logged_variables.items()} == {
        "risk": ("score",),
        "doubt": ("sure",),
    }
    assert (monitor.heads, monitor.at_hand[-2:]) == ({}, ("risk", "doubt"))
    assert (monitor.scoring.env, monitor.scoring.memory) == (str(tmp_path / "envs/bin/python"), 2_000_000_000)
    logged = {"scoring": {"by": "logged"}, "columns": {"prediction": "y"}, "sampler": None, "variables": None}
    mapping["monitors"]["digits"] |= logged
    monitor = Settings.from_mapping(mapping, environment={}).monitors["digits"]
    assert (monitor.at_hand, monitor.sampler.type) == ((), "adaptive")


def test_classes_are_canonical() -> None:
    mapping = yaml.safe_load(MINIMAL)
    mapping["monitors"]["digits"]["classes"] = [" cat ", 2.0, "3.0"]
    assert Settings.from_mapping(mapping, environment={}).monitors["digits"].classes == ("cat", "2", "3")


def test_a_monitor_may_be_called_like_a_secret() -> None:
    mapping = {"monitors": {"token-secret": {**yaml.safe_load(MINIMAL)["monitors"]["digits"], "level": 7}}}
    with pytest.raises(ConfigError, match=r"monitors\.token-secret\.level.*got 7"):
        Settings.from_mapping(mapping, environment={})


def test_whole_numbers_in_every_spelling(write) -> None:
    text = MINIMAL + "    round: {min_inputs: '500', max_inputs: 1e6}\n    sampler: {budget: 1_000}\n"
    monitor = load(write(text), {}).monitors["digits"]
    assert (monitor.round.min_inputs, monitor.round.max_inputs, monitor.sampler.budget) == (500, 1_000_000, 1000)


def test_settings_are_frozen(write) -> None:
    settings = load(write(MINIMAL), {})
    with pytest.raises(ValidationError):
        settings.state = Path("/elsewhere")  # type: ignore[misc]


def test_an_unknown_monitor_names_those_there_are(write) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'digits'"):
        load(write(MINIMAL), {}).monitor("digit")


# references to the environment


@pytest.mark.parametrize(
    ("written", "environment", "value"),
    [
        ("${NAME}", {"NAME": "a"}, "a"),
        ("${NAME:-b}", {}, "b"),
        ("${NAME:-b}", {"NAME": ""}, "b"),
        ("${NAME:-}", {}, ""),
        ("x-${NAME}-${OTHER:-y z}", {"NAME": "a"}, "x-a-y z"),
        ("$${NAME}", {}, "${NAME}"),
        ("'${NAME}'", {"NAME": "a: b # {c}"}, "a: b # {c}"),
        ("${NAME}", {"NAME": "${OTHER}"}, "${OTHER}"),
        ("${NAME:-a, b: c}", {}, "a, b: c"),
        ("cost $5", {}, "cost $5"),
    ],
)
@pytest.mark.parametrize("style", ["block", "flow", "mapping"])
def test_references(write, written: str, environment: dict[str, str], value: str, style: str) -> None:
    if style == "mapping":
        mapping = yaml.safe_load(MINIMAL)
        mapping["monitors"]["digits"]["columns"] = {"text": written.strip("'")}
        settings = Settings.from_mapping(mapping, environment=environment)
    else:
        columns = f"\n      text: {written}\n" if style == "block" else f" {{text: {written}}}\n"
        settings = load(write(f"{MINIMAL}    columns:{columns}"), environment)
    assert settings.monitors["digits"].columns.text == value


def test_a_reference_may_stand_for_a_number_or_a_switch(write) -> None:
    text = MINIMAL + "    threads: ${THREADS}\n    convert_sklearn: ${CONVERT}\n    sampler: {budget: ${BUDGET}}\n"
    monitor = load(write(text), {"THREADS": "4", "CONVERT": "true", "BUDGET": "50"}).monitors["digits"]
    assert (monitor.threads, monitor.convert_sklearn, monitor.sampler.budget) == (4, True, 50)


def test_a_reference_in_a_comment_is_not_read(write) -> None:
    assert load(write(MINIMAL + "# ${NOWHERE} ${\n"), {})


# where the file is, and what wins over it


def test_the_environment_names_the_file_and_wins_over_it(write, tmp_path: Path) -> None:
    environment = {
        "OPMON_CONFIG": str(write(MINIMAL + "database: sqlite:///a.db\n")),
        "OPMON_DATABASE": "sqlite:///b.db",
        "OPMON_MLFLOW_TRACKING_URI": "http://mlflow:5000",
        "OPMON_STATE": "elsewhere",
    }
    settings = load(None, environment)
    assert settings.database.get_secret_value() == f"sqlite:///{tmp_path}/b.db"
    assert settings.mlflow.tracking_uri.get_secret_value() == "http://mlflow:5000"
    assert settings.state == tmp_path / "elsewhere"


def test_opmon_yaml_of_the_working_folder_is_the_default(write, tmp_path: Path, monkeypatch) -> None:
    write(MINIMAL)
    monkeypatch.chdir(tmp_path)
    assert load(environment={}).folder == tmp_path


def test_mlflow_variable_counts_where_nothing_else_is_said(write) -> None:
    variable = {"MLFLOW_TRACKING_URI": "http://theirs"}
    assert load(write(MINIMAL), variable).mlflow.tracking_uri.get_secret_value() == "http://theirs"
    said = load(write(MINIMAL + "mlflow: {tracking_uri: 'http://ours'}\n"), variable)
    assert said.mlflow.tracking_uri.get_secret_value() == "http://ours"


def test_mlflow_is_a_registry_like_any_other(write, tmp_path: Path) -> None:
    path = write(MINIMAL + "registry: {type: mlflow, tracking_uri: 'sqlite:///m.db'}\n")
    settings = load(path, {"MLFLOW_TRACKING_URI": "http://theirs"})
    assert settings.registry is None
    assert settings.mlflow.tracking_uri.get_secret_value() == f"sqlite:///{tmp_path}/m.db"
    ours = load(path, {"OPMON_MLFLOW_TRACKING_URI": "http://ours"})
    assert ours.mlflow.tracking_uri.get_secret_value() == "http://ours"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "registry: {type: mlfow}\n",
            r"opmon.yaml:\d+: registry.type: there is no such registry.*did you mean 'mlflow'",
        ),
        ("registry: {type: mlflow, uri: x}\n", r"opmon.yaml:\d+: mlflow.uri: there is no such key"),
        ("registry: {type: mlflow}\nmlflow: {tracking_uri: x}\n", r"mlflow: says where MLflow is.*keep one of them"),
    ],
)
def test_a_registry_that_cannot_be_is_told(write, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load(write(MINIMAL + text), {})


def test_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load(path, {}).monitors["digits"].model == "models:/digits@champion"


def test_monitors_may_share_a_part(write) -> None:
    text = (
        "monitors:\n"
        "  a: &a {model: models:/a/1, source: {path: a}, level: 0.9, seed: 1}\n"
        "  b: {<<: *a, model: models:/b/2, level: 0.8}\n"
    )
    monitor = load(write(text), {}).monitors["b"]
    assert (monitor.name, monitor.model, monitor.level, monitor.seed) == ("b", "models:/b/2", 0.8, 1)


# secrets

SECRETIVE = f"""{MINIMAL}    actions:
      - type: webhook
        url: https://hooks.example.com/T0/private-path?key=private-query
        secret: {KEY}
        headers: {{Authorization: Bearer private-header}}
database: postgresql+psycopg://opmon:${{PASSWORD}}@db/opmon
mlflow: {{tracking_uri: "https://me:${{PASSWORD}}@mlflow.example.com"}}
"""


def test_secrets_are_in_no_text_of_the_settings(write) -> None:
    settings = load(write(SECRETIVE), {"PASSWORD": "private-password"})
    texts = [
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        json.dumps(settings.dump()),
        f"{settings.database}",
    ]
    texts += [repr(settings.monitors["digits"].actions[0].plugin), str(settings.model_dump())]
    for text in texts:
        assert "private" not in text
        assert KEY not in text
    assert settings.database.get_secret_value() == "postgresql+psycopg://opmon:private-password@db/opmon"
    assert "https://hooks.example.com/***" in json.dumps(settings.dump())


def test_a_dump_can_be_read_again(write) -> None:
    first = load(write(MINIMAL), {})
    dumped = first.dump()
    del dumped["folder"], dumped["monitors"]["digits"]["name"]
    assert Settings.from_mapping(dumped, first.folder, {}).dump() == first.dump()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p/w@x@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("https://u@h/x?token=abc&a=b", "https://***@h/x?token=***&a=b"),
        ("https://h:8080/x", "https://h:8080/x"),
        ("sqlite:////a/b@c.db", "sqlite:////a/b@c.db"),
        ("models:/digits@champion", "models:/digits@champion"),
        ("cannot connect to mysql://a:b@c now", "cannot connect to mysql://a:***@c now"),
    ],
)
def test_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: f"~{text}~"))
def test_no_password_is_left_whatever_is_in_it(password: str) -> None:
    assert without_password(f"postgresql://user:{password}@host/name") == "postgresql://user:***@host/name"


# the example, and what is read at what cost


def test_the_example_loads(write) -> None:
    settings = load(write(render_example()), {})
    assert settings.monitors["digits"].rules[0].plugin == AccuracyLevel(0.92, "accuracy-floor", alpha=0.05)


def test_the_example_shows_the_defaults(write) -> None:
    shown, default = (load(write(text), {}).dump() for text in (render_example(), MINIMAL))
    shown["monitors"]["digits"]["rules"] = []
    shown["monitors"]["digits"]["sampler"].pop("aim")
    assert shown == default


def test_the_example_names_every_key() -> None:
    def parts(root: type[BaseModel]) -> list[type[BaseModel]]:
        return [root, *(inner for child in root.__subclasses__() for inner in parts(child))]

    text = render_example()
    keys = {
        name for part in parts(Part) if issubclass(part, Part) for name in part.model_fields if name not in part.derived
    }
    assert {key for key in keys - {"parameters", "plugin"} if f"{key}:" not in text} == set()


def test_public_names_are_there() -> None:
    assert [name for name in config.__all__ if not hasattr(config, name)] == []


def test_importing_the_configuration_is_light() -> None:
    script = "import sys, opmon.config; print([m for m in sys.modules if m.split('.')[0] in HEAVY])".replace(
        "HEAVY", "('mlflow', 'pandas', 'evidently', 'sqlalchemy', 'apscheduler', 'onnxruntime', 'scipy', 'sklearn')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plugin_that_does_not_import_is_an_error(write, tmp_path: Path) -> None:
    path = write(MINIMAL + "    sampler: {type: broken}\n")
    package = tmp_path / "plugin"
    (package / "broken-1.dist-info").mkdir(parents=True)
    (package / "broken-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (package / "broken-1.dist-info" / "entry_points.txt").write_text("[opmon.samplers]\nbroken = broken:Sampler\n")
    (package / "broken.py").write_text("raise RuntimeError('first line\\nsecond line\\nthird line')\n")
    script = (
        "import sys, opmon.config, opmon.errors\n"
        "try: opmon.config.load(sys.argv[1], {})\n"
        "except opmon.errors.ConfigError as exc: print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(package)},
    )  # fmt: skip
    assert "opmon.yaml:5: monitors.digits.sampler.type: sampler 'broken'" in done.stdout
    assert "RuntimeError: first line second line third line" in done.stdout
    assert len(done.stdout.strip().splitlines()) == 1


def test_errors_of_a_mapping_name_the_key() -> None:
    with pytest.raises(ConfigError, match=r"^monitors\.digits\.level: must be a number; got 'x'$"):
        Settings.from_mapping({"monitors": {"digits": {**yaml.safe_load(MINIMAL)["monitors"]["digits"], "level": "x"}}})


def test_modules_are_looked_for_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "opmon.yaml").write_text(MINIMAL)
    (tmp_path / "beside_the_file.py").write_text("def pixels(rows):\n    return {}\n")
    load(tmp_path / "opmon.yaml", {})
    load(tmp_path / "opmon.yaml", {})
    assert sys.path.count(str(tmp_path)) == 1
    assert importlib.import_module("beside_the_file").pixels([]) == {}


def test_only_true_and_false_are_booleans(tmp_path: Path) -> None:
    """Norway, and the classes yes and no, are text; a switch may be written either way."""
    path = tmp_path / "opmon.yaml"
    path.write_text(
        "monitors:\n  m:\n    model: models:/m/1\n    source: {path: in/}\n    classes: [yes, no]\n"
        "    convert_sklearn: yes\n    slices: [{country: [NO, DE]}, {paid: [true]}]\n    drift: {enabled: off}\n"
    )
    monitor = load(path).monitor("m")
    assert monitor.class_names == ("yes", "no")
    assert [each.values for each in monitor.slices] == [("NO", "DE"), ("true",)]
    assert (monitor.convert_sklearn, monitor.drift.enabled) == (True, False)
