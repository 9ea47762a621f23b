"""What can be checked of ``deploy/`` without a container engine: names, addresses, options and files are real."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from opmon.cli import group
from opmon.config import load
from opmon.config.files import OVERRIDES

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT = (DEPLOY / "systemd" / "opmon.service").read_text()


def environment() -> dict[str, str]:
    """What compose.yaml gives opmon, with the password filled in."""
    given = COMPOSE["services"]["opmon"]["environment"]
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
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in COMPOSE["services"][other]


def test_no_secret_has_a_default_and_only_loopback_is_published() -> None:
    assert "${POSTGRES_PASSWORD:?" in (DEPLOY / "compose.yaml").read_text()
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_configuration_is_valid_under_the_environment_of_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in environment().items():
        assert key in OVERRIDES, f"opmon reads no {key}"
        monkeypatch.setenv(key, value)
    settings = load(DEPLOY / "opmon.yaml")
    assert settings.database.get_secret_value() == "postgresql+psycopg://postgres:pw@postgres:5432/opmon"
    assert settings.mlflow.tracking_uri.get_secret_value() == "http://mlflow:5000"
    assert str(settings.state) == "/var/lib/opmon"


@pytest.mark.parametrize("command", [re.search(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.M)[1]])  # type: ignore[index]
def test_the_image_runs_a_command_of_opmon(command: str) -> None:
    words = yaml.safe_load(command)
    told = CliRunner().invoke(group, [words[0], "--help"])
    assert told.exit_code == 0
    assert all(word in told.output for word in words if word.startswith("--"))


def test_the_image_holds_what_the_build_needs() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copied = {word for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M) for word in line.split()[:-1]}
    assert all((DEPLOY.parent / name).exists() for name in copied)
    assert re.search(r"^USER (?!root)", text, re.M)


def test_the_unit_starts_what_is_there() -> None:
    words = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT, re.M)[1])  # type: ignore[index]
    told = CliRunner().invoke(group, [words[1], "--help"])
    assert told.exit_code == 0
    assert "--config" in told.output
    named = set(re.findall(r"OPMON_[A-Z_]+(?==)", UNIT))
    assert named <= set(OVERRIDES)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """Where systemd is installed; else its own words are checked by name."""
    known = {"Unit", "Service", "Install"}
    assert set(re.findall(r"^\[(\w+)\]$", UNIT, re.M)) == known
    program = shutil.which("systemd-analyze")
    if program is not None:
        path = tmp_path / "opmon.service"
        path.write_text(UNIT.replace("/opt/opmon/bin/opmon", "/bin/true"))
        told = subprocess.run([program, "verify", str(path)], capture_output=True, text=True, check=False)
        assert "Unknown" not in told.stderr
        assert told.returncode == 0, told.stderr
