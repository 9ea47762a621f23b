"""``opmon explain``."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import click

from opmon.cli._parameters import ALSO, EXAMPLES, Parameter, parameters_of
from opmon.cli._plain import plain
from opmon.cli.common import json_option, print_json
from opmon.wording import nearest

_KEYS = {
    "sampler": "sampler",
    "source": "source",
    "rule": "rules",
    "action": "actions",
    "head": "variables",
    "perturbation": "robustness.perturbations",
    "registry": "registry",
    "label_provider": "labels.provider",
    "executor": "executor",
    "judge": "judge",
    "measure": "measures",
}
"""Where each kind is named in opmon.yaml; estimators follow from the sampler."""
_LISTS = frozenset({"rule", "action", "head", "perturbation"})


@dataclass(frozen=True)
class Entry:
    """What is known of one plugin."""

    kind: str
    name: str
    text: str
    parameters: Mapping[str, Parameter]
    example: str | None

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        return {**vars(self), "parameters": {name: vars(each) for name, each in self.parameters.items()}}


@click.command()
@click.argument("name", required=False)
@click.argument("second", required=False, metavar="")
@click.option("--kind", default=None, help="Only a plugin of this kind, such as rule or sampler.")
@click.option("--all", "everything", is_flag=True, help="Everything that opmon brings, as one page of Markdown.")
@json_option()
def explain(name: str | None, second: str | None, kind: str | None, everything: bool, as_json: bool) -> None:
    """What a rule promises; what a sampler, a source, an action ... does; and the parameters that it takes.

    NAME is the "type:" in opmon.yaml, such as accuracy_level. Its kind may stand before it: source files. Without a
    NAME all that there is is listed.
    """
    from opmon import plugins

    if everything:
        click.echo(page())
        return
    if name is not None and second is not None:
        kind, name = name.replace("-", "_"), second
    if kind is not None and kind not in plugins.GROUPS:
        raise click.UsageError(f"there is no kind {kind!r}; the kinds are: {', '.join(plugins.GROUPS)}")
    kinds = [kind] if kind is not None else list(plugins.GROUPS)
    if name is None:
        there = {each: list(plugins.names(each)) for each in kinds}
        if as_json:
            print_json(there)
        else:
            click.echo(_overview(there))
        return
    entries = [_explained(each, name) for each in kinds if name in plugins.names(each)]
    told = _as_told(name) if not entries and "measure" in kinds else None
    if told is not None:
        entries = [_explained("measure", told)]
    if not entries:
        raise click.UsageError(_unknown(name, kinds))
    if as_json:
        for entry in entries:
            print_json(entry.as_json())
        return
    click.echo("\n\n".join(_told(entry) for entry in entries))


def _as_told(name: str) -> str | None:
    """The measure that status and pages tell by this name, such as MAE, macro F1 or recall[fraud]; None if none is."""
    from opmon import plugins
    from opmon.errors import OpmonError

    plain = re.sub(r"^(macro|weighted|micro) |\[.*", "", name)
    for each in plugins.names("measure"):
        with suppress(OpmonError):
            if plain == plugins.make("measure", each, {}).quantity().name:
                return each
    same = plain.lower().replace(" ", "_")
    return same if same in plugins.names("measure") else None


def _overview(there: Mapping[str, Sequence[str]]) -> str:
    """The names of each kind, as wide as a terminal."""
    width = max(map(len, there)) + 2
    lines = [
        textwrap.fill(f"{kind:{width}}{', '.join(names)}", 100, subsequent_indent=" " * width, break_on_hyphens=False)
        for kind, names in there.items()
    ]
    return "\n".join([*lines, "", "Next: opmon explain NAME, such as opmon explain accuracy_level."])


def page() -> str:
    """The built-in plugins, kind by kind, as Markdown."""
    from opmon import plugins

    lines = [
        "# Reference",
        "",
        "What can be named in opmon.yaml, with every key. `opmon explain NAME` says the same, also of what other",
        "packages plug in. This page is written by `opmon explain --all`.",
    ]
    for kind in plugins.GROUPS:
        own = [name for name in plugins.names(kind) if plugins.load(kind, name).__module__.startswith("opmon.")]
        lines += ["", f"## {kind.replace('_', ' ').capitalize()}s" if kind != "registry" else "## Registries"]
        for name in own:
            lines += ["", *_section(_explained(kind, name))]
    return "\n".join(lines)


def example(kind: str, name: str, parameters: Mapping[str, Parameter]) -> str:
    """An example of the plugin in opmon.yaml, with the required parameters."""
    given = {key: EXAMPLES.get(key, "...") for key, about in parameters.items() if about.required}
    given |= ALSO.get((kind, name), {})
    if kind == "perturbation" and "path" in given:
        given["path"] = "mine:darker"
    if kind == "measure":
        listed = ", ".join(f"{key}: {_yaml(value)}" for key, value in given.items())
        return f"measures: [{{{name}: {{{listed}}}}}]" if given else f"measures: [{name}]"
    inner = ", ".join([f"type: {name}", *(f"{key}: {_yaml(value)}" for key, value in given.items())])
    return f"{_KEYS[kind]}: [{{{inner}}}]" if kind in _LISTS else f"{_KEYS[kind]}: {{{inner}}}"


def _yaml(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _explained(kind: str, name: str) -> Entry:
    from opmon import plugins

    factory = plugins.load(kind, name)
    parameters = parameters_of(factory)
    shown = example(kind, name, parameters) if kind in _KEYS else None
    return Entry(kind, name, plain(inspect.getdoc(factory) or ""), parameters, shown)


def _told(entry: Entry) -> str:
    lines = [f"{entry.name} ({entry.kind})", "", entry.text, ""]
    lines += [*_listed(entry.parameters)] or ["It takes no parameters."]
    if entry.example is not None:
        lines += ["", "For example:", f"  {entry.example}"]
    return "\n".join(lines)


def _listed(parameters: Mapping[str, Parameter]) -> Iterator[str]:
    if parameters:
        yield "Parameters:"
    for name, about in parameters.items():
        default = "required" if about.required else f"default {_value(about.default)}"
        yield f"  {name}: {about.type}, {default}" if about.type else f"  {name}: {default}"
        if about.text:
            yield f"      {about.text}"


def _section(entry: Entry) -> Iterator[str]:
    yield f"### {entry.name}"
    yield ""
    yield _markdown(entry.text)
    if entry.parameters:
        yield from ("", "| key | type | default | meaning |", "| --- | --- | --- | --- |")
    for name, about in entry.parameters.items():
        default = "required" if about.required else f"`{_value(about.default)}`"
        cells = (f"`{name}`", about.type, default, about.text)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    if entry.example is not None:
        yield from ("", "```yaml", entry.example, "```")


def _markdown(text: str) -> str:
    """Plain text in which tables and formulas keep their form."""
    return "\n\n".join(f"```text\n{block}\n```" if _has_form(block) else block for block in re.split(r"\n\s*\n", text))


def _has_form(block: str) -> bool:
    is_list = re.match(r"(1\.|-) ", block) is not None
    return "===" in block or block.startswith(" ") or ("\n   " in block and not is_list)


def _value(value: object) -> str:
    return "none" if value in (None, "") else str(value)


def _unknown(name: str, kinds: list[str]) -> str:
    from opmon import plugins

    known = {each: kind for kind in kinds for each in plugins.names(kind)}
    near = nearest(name, known)
    hint = "" if near is None else f" Did you mean {near!r}, a {known[near]}?"
    return f"there is nothing called {name!r} to explain; the rules are: {', '.join(plugins.names('rule'))}.{hint}"
