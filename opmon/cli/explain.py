"""``opmon explain``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import click

from opmon.cli._plain import plain
from opmon.cli.common import json_option, print_json
from opmon.wording import nearest


@click.command()
@click.argument("name")
@click.option("--kind", default=None, help="Only a plugin of this kind, such as rule or sampler.")
@json_option()
def explain(name: str, kind: str | None, as_json: bool) -> None:
    """What a rule promises; what a sampler, a source, an action … does; and the parameters that it takes.

    NAME is what stands behind "type:" in opmon.yaml, such as accuracy_level.
    """
    from opmon import plugins

    kinds = [kind] if kind is not None else list(plugins.GROUPS)
    found = [_explained(each, name) for each in kinds if name in plugins.names(each)]
    if not found:
        raise click.UsageError(_unknown(name, kinds))
    if as_json:
        for entry in found:
            print_json(entry)
        return
    click.echo("\n\n".join(_told(entry) for entry in found))


def _explained(kind: str, name: str) -> dict[str, Any]:
    from opmon import plugins

    factory = plugins.load(kind, name)
    return {
        "kind": kind,
        "name": name,
        "text": plain(inspect.getdoc(factory) or ""),
        "parameters": _parameters(factory),
    }


def _parameters(factory: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """By name: what it must be, and its default; ``required`` where it has none."""
    defaults = {
        each.name: each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        for each in (dataclasses.fields(factory) if dataclasses.is_dataclass(factory) else ())
    }
    found = {}
    for each in inspect.signature(factory).parameters.values():
        default = defaults.get(each.name, each.default)
        required = default in (inspect.Parameter.empty, dataclasses.MISSING)
        kind = each.annotation if isinstance(each.annotation, str) else getattr(each.annotation, "__name__", "")
        found[each.name] = {"type": kind, "required": required, "default": None if required else default}
    return found


def _told(entry: dict[str, Any]) -> str:
    lines = [f"{entry['name']} ({entry['kind']})", "", entry["text"], "", "Parameters:"]
    for name, about in entry["parameters"].items():
        default = "required" if about["required"] else f"default {_value(about['default'])}"
        lines.append(f"  {name}: {about['type']}, {default}" if about["type"] else f"  {name}: {default}")
    return "\n".join(lines if entry["parameters"] else [*lines[:-1], "It takes no parameters."])


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def _unknown(name: str, kinds: list[str]) -> str:
    from opmon import plugins

    known = {each: kind for kind in kinds for each in plugins.names(kind)}
    near = nearest(name, known)
    hint = "" if near is None else f" Did you mean {near!r}, a {known[near]}?"
    return f"there is nothing called {name!r} to explain; the rules are: {', '.join(plugins.names('rule'))}.{hint}"
