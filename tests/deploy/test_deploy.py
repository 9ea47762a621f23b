"""What can be checked of ``deploy/`` without a container engine: names, addresses, options and files are real."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import opmon
from opmon.cli import group
from opmon.config import load
from opmon.config.files import OVERRIDES

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


OPMON = ("migrated", "operator", "web", "worker", "traffic")
"""The services that run opmon's image."""


def environment(service: str = "web") -> dict[str, str]:
    """What compose.yaml gives opmon, with the password filled in."""
    given = COMPOSE["services"][service]["environment"]
    return {key: value.replace("${POSTGRES_PASSWORD}", "pw") for key, value in given.items()}


def test_every_file_that_compose_names_is_there() -> None:
    for name, service in COMPOSE["services"].items():
        build = service.get("build")
        if build:
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file(), name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists(), f"{name}: {source}"


def test_services_wait_for_healthy_ones() -> None:
    for service in COMPOSE["services"].values():
        for other, how in service.get("depends_on", {}).items():
            once = COMPOSE["services"][other].get("restart") == "no"
            assert how == {"condition": "service_completed_successfully" if once else "service_healthy"}
            assert once or "healthcheck" in COMPOSE["services"][other]


def test_no_secret_has_a_default_and_only_loopback_is_published() -> None:
    assert "${POSTGRES_PASSWORD:?" in (DEPLOY / "compose.yaml").read_text()
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("service", OPMON)
def test_the_configuration_is_valid_under_the_environment_of_compose(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in environment(service).items():
        assert key in {*OVERRIDES, "OPMON_CONFIG"}, f"opmon reads no {key}"
        monkeypatch.setenv(key, value)
    settings = load(DEPLOY / "opmon.yaml")
    assert settings.database.get_secret_value() == "postgresql+psycopg://postgres:pw@postgres:5432/opmon"
    assert settings.mlflow.tracking_uri.get_secret_value() == "http://mlflow:5000"
    assert str(settings.state) == "/var/lib/opmon"


def test_the_image_and_compose_run_commands_of_opmon() -> None:
    (first,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.M)
    told = [COMPOSE["services"][name].get("command") for name in OPMON]
    for words in [yaml.safe_load(first), *filter(None, told)]:
        plain = [word for word in words if not word.startswith("-") and word not in ("web", "worker")]
        said = CliRunner().invoke(group, [*plain, "--help"])
        assert said.exit_code == 0, words
        assert all(word in said.output for word in words if word.startswith("--")), words


def test_every_target_that_is_named_is_in_the_dockerfile() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.M))
    assert {COMPOSE["services"][name]["build"]["target"] for name in OPMON} <= stages
    assert set(re.findall(r"--target (\S+)", DOCKERFILE)) <= stages
    assert set(re.findall(r"--from=(\S+)", DOCKERFILE)) <= stages
    assert "USER 10001:10001" in DOCKERFILE


def test_compose_gives_the_image_no_more_than_it_needs() -> None:
    for name in OPMON:
        service = COMPOSE["services"][name]
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name


def test_the_image_holds_what_the_build_needs() -> None:
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.M) for word in line.split()[:-1]}
    assert all((DEPLOY.parent / name).exists() for name in copied)


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_start_what_is_there(unit: Path) -> None:
    text = unit.read_text()
    assert set(re.findall(r"^\[(\w+)\]$", text, re.M)) <= {"Unit", "Service", "Install"}
    for line in re.findall(r"^Exec(?:Start|StartPre)=(.*)$", text, re.M):
        words = shlex.split(line)[1:]
        plain = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
        told = CliRunner().invoke(group, [*plain, "--help"])
        assert told.exit_code == 0, line
        assert all(word in told.output for word in words if word.startswith("--")), line
    assert set(re.findall(r"OPMON_[A-Z_]+(?==)", text)) <= set(OVERRIDES)


def test_all_units_are_one_user_with_one_state_folder() -> None:
    """systemd hands a unit's state folder over to the unit's user, and so takes it from another that still runs."""
    units = [path.read_text() for path in (DEPLOY / "systemd").glob("*.service")]
    assert len(units) == 3
    for key in ("DynamicUser", "User", "StateDirectory", "StateDirectoryMode", "Environment"):
        assert len({tuple(re.findall(rf"^{key}=(.*)$", text, re.M)) for text in units}) == 1, key
    assert all(re.search(r"^User=opmon$", text, re.M) for text in units)


def test_rules_and_dashboard_ask_for_metrics_that_there_are() -> None:
    """The documents list every metric and no other, which a test of theirs holds."""
    documents = (Path(opmon.__file__).parent / "docs" / "operations.md").read_text()
    known = set(re.findall(r"`(opmon_[a-z_]+)`", documents))
    known |= {"opmon_cycle_duration_seconds_sum", "opmon_cycle_duration_seconds_count"}
    rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())
    asked = [rule["expr"] for part in rules["groups"] for rule in part["rules"]]
    panels = json.loads((DEPLOY / "grafana" / "opmon.json").read_text())["panels"]
    asked += [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(asked) > 25
    for expression in asked:
        named = set(re.findall(r"\bopmon_[a-z_]+", expression))
        assert named <= known, expression
        for label in re.findall(r"(\w+)(?:=|!|=~)+\"", expression):
            assert label in {"monitor", "status", "state"}, expression


def test_the_notes_of_the_chart_ask_only_what_is_there_in_each_mode() -> None:
    """Where a CronJob runs the monitors, there is no worker whose pod could be asked for the first token."""
    templates = DEPLOY / "helm/opmon/templates"
    branch = re.compile(r'\{\{- if eq \.Values\.mode "service" }}(.*?)\{\{- else }}(.*?)\{\{- end }}\n', re.S)
    (made,), (told,) = (branch.findall((templates / name).read_text()) for name in ("worker.yaml", "NOTES.txt"))
    named = re.compile(r'(deploy|cronjob)/\{\{ include "opmon\.name" \. }}-(\w+)')
    for of_mode, said in zip(made, told, strict=True):
        (kind,) = re.findall(r"^kind: (\w+)$", of_mode, re.M)
        (name,) = re.findall(r'^  name: \{\{ include "opmon\.name" \. }}-(\w+)$', of_mode, re.M)
        assert set(named.findall(said)) == {({"Deployment": "deploy", "CronJob": "cronjob"}[kind], name)}
    assert named.findall(branch.sub("", (templates / "NOTES.txt").read_text())) == []
