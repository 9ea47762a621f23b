"""What schemas do not say of a rendered chart: its configuration loads, what is named is there, nobody is root."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from opmon.cli import group
from opmon.config import Settings
from opmon.config.files import OVERRIDES

HOOK = "helm.sh/hook"


def is_hook(each: dict[str, Any]) -> bool:
    return HOOK in each["metadata"].get("annotations", {})


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in documents:
        match each["kind"]:
            case "Deployment" | "Job":
                yield each["metadata"]["name"], each["spec"]["template"]
            case "CronJob":
                yield each["metadata"]["name"], each["spec"]["jobTemplate"]["spec"]["template"]


def check_pod(name: str, pod: dict[str, Any], documents: list[dict[str, Any]]) -> None:
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    assert spec["securityContext"]["runAsNonRoot"], name
    assert container["securityContext"]["readOnlyRootFilesystem"], name
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes, name
    config = next(volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "config")
    assert config in {each["metadata"]["name"] for each in documents if each["kind"] == "ConfigMap"}, name
    told = {each["name"] for each in container["env"] if each["name"].startswith("OPMON_")}
    assert told <= {*OVERRIDES, "OPMON_CONFIG", "OPMON_METRICS_TOKEN"}, told
    secrets = [each for each in container["env"] if "secretKeyRef" in each.get("valueFrom", {})]
    assert "OPMON_DATABASE" in {each["name"] for each in secrets}, name
    ports = {port["name"] for port in container.get("ports", ())}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert probe not in container or container[probe]["httpGet"]["port"] in ports, name
    words = [word for word in container["args"] if not word.startswith("-") and word not in ("web", "worker")]
    told_by = CliRunner().invoke(group, [*words, "--help"])
    assert told_by.exit_code == 0, container["args"]
    assert all(word in told_by.output for word in container["args"] if word.startswith("--")), container["args"]


def check_hooks(documents: list[dict[str, Any]]) -> None:
    """What runs before the chart's objects are there needs none of them; what stays is no hook: helm rolls it back."""
    early, later = ([each for each in documents if is_hook(each) == wanted] for wanted in (True, False))
    assert {each["kind"] for each in early} <= {"Job", "ConfigMap"}, early
    for some in (early, later):
        there = {(each["kind"], each["metadata"]["name"]) for each in some}
        for name, pod in pods(some):
            spec = pod["spec"]
            needed = {("ConfigMap", each["configMap"]["name"]) for each in spec["volumes"] if "configMap" in each}
            if "serviceAccountName" in spec:
                needed.add(("ServiceAccount", spec["serviceAccountName"]))
            assert needed <= there, (name, needed)
            assert some is later or not any("persistentVolumeClaim" in each for each in spec["volumes"]), name


def check_services(documents: list[dict[str, Any]]) -> None:
    """Every selector finds a pod, every port of a service one of its pods'."""
    labelled = [pod["metadata"]["labels"] | {"": ""} for _, pod in pods(documents)]
    for each in documents:
        if each["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
            spec = each["spec"]
            key = {"Service": "selector", "PodDisruptionBudget": "selector", "NetworkPolicy": "podSelector"}[
                each["kind"]
            ]
            wanted = spec[key].get("matchLabels", spec[key])
            assert any(wanted.items() <= labels.items() for labels in labelled), each["metadata"]["name"]
        if each["kind"] == "ServiceMonitor":
            services = [other for other in documents if other["kind"] == "Service"]
            wanted = each["spec"]["selector"]["matchLabels"]
            found = [other for other in services if wanted.items() <= other["metadata"]["labels"].items()]
            ports = {port["name"] for other in found for port in other["spec"]["ports"]}
            assert {endpoint["port"] for endpoint in each["spec"]["endpoints"]} <= ports


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        documents = [each for each in yaml.safe_load_all(path.read_text()) if each]
        (config,) = {each["data"]["opmon.yaml"] for each in documents if each["kind"] == "ConfigMap"}
        environment = {**os.environ, "INGEST_TOKEN": "x" * 32, "OPMON_METRICS_TOKEN": "x" * 32}
        settings = Settings.from_mapping(yaml.safe_load(config), "/etc/opmon", environment)
        for name, pod in pods(documents):
            check_pod(name, pod, documents)
        check_hooks(documents)
        check_services(documents)
        gpus = [pod["spec"]["containers"][0]["resources"].get("limits", {}) for _, pod in pods(documents)]
        asks = any("nvidia.com/gpu" in limits for limits in gpus)
        assert asks == any(str(monitor.device) == "cuda" for monitor in settings.monitors.values()), path
        print(f"{path.stem}: {len(documents)} objects, {len(list(pods(documents)))} kinds of pods")  # noqa: T201


if __name__ == "__main__":
    main()
