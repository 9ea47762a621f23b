"""A YAML text as a document: plain values, with the line of every key.

Nothing is built but mappings, lists, text, numbers, booleans and null. The size of the text, the number of values
(after aliases are followed) and the depth are bounded, so that no file can exhaust the process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from opmon.config.document import MAX_DEPTH, REFERENCE, Document, KeyPath, References
from opmon.errors import ConfigError

MAX_BYTES = 1_000_000
MAX_VALUES = 50_000

_LONGEST_NUMBER = 400
"""Characters of a number."""

_TAG = "tag:yaml.org,2002:"
_OPEN, _CLOSE = (
    "\ue000",
    "\ue001",
)  # private-use characters: a reference is carried through the YAML parser between them
_TOKEN = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


def parse(text: str, name: str, environment: Mapping[str, str]) -> Document:
    """The document that ``text`` holds; :class:`ConfigError` names file and line where it cannot be one."""
    references: list[str] = []

    def carry(match: re.Match[str]) -> str:
        references.append(match.group())
        return f"{_OPEN}{len(references) - 1}{_CLOSE}"

    document = Document(name=name)
    root = _compose(REFERENCE.sub(carry, text), name)
    if root is None or (isinstance(root, yaml.ScalarNode) and root.tag == f"{_TAG}null"):
        raise ConfigError(f"{name} is empty; write a configuration with: opmon init")
    if not isinstance(root, yaml.MappingNode):
        kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
        raise ConfigError(f"{name}:1: the file holds {kind}; it must hold keys such as 'monitors:' (see: opmon init)")
    document.data = _Nodes(document, references, environment).mapping(root, ())
    return document


def _compose(text: str, name: str) -> yaml.Node | None:
    """The node tree, after a first pass over the events has shown that it is small enough to build."""
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > 2 * MAX_VALUES:
                what = f"nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else f"more than {MAX_VALUES:,} values"
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise ConfigError(f"{name}:{line}: {what}: this is no configuration of opmon")
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except ConfigError:
        raise
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        code = ord(exc.character) if isinstance(exc.character, str) else int(exc.character)
        raise ConfigError(f"{name}:{line}: the character U+{code:04X} is not allowed; take it out") from exc
    except yaml.MarkedYAMLError as exc:
        raise ConfigError(_syntax(exc, name)) from exc
    except ValueError as exc:  # PyYAML lets some through, such as a % directive with an endless number
        raise ConfigError(f"{name}: not readable as YAML: {exc}") from exc


def _syntax(exc: yaml.MarkedYAMLError, name: str) -> str:
    mark = exc.problem_mark or exc.context_mark
    problem = str(exc.problem or exc.context)
    problem = f"{exc.context}, {problem}" if problem.startswith("but ") else problem
    problem = _TOKEN.sub("${…}", " ".join(problem.split()))
    hint = ""
    if "'\\t'" in problem:
        problem, hint = "a tab stands where YAML wants spaces", "; indent with spaces"
    elif "mapping values are not allowed" in problem:
        hint = "; check the indentation, and put text that holds ': ' in quotes"
    elif "could not find expected ':'" in problem:
        hint = "; every key needs a colon and a space after it"
    where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    return f"{where}: not readable as YAML: {problem}{hint}"


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace(_TAG, "!!")


class _Nodes(References):
    """Turns the node tree into plain values, and notes the lines."""

    def __init__(self, document: Document, references: list[str], environment: Mapping[str, str]) -> None:
        super().__init__(document, environment)
        self.references = references
        self.values = 0

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        self.values += 1
        if self.values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise self.document.error(
                path[:3], "its aliases (*name) multiply or contain themselves; write the values out"
            )
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.value(inner, (*path, position)) for position, inner in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        raise self.document.error(path, f"the tag {_tag(node)} is not allowed; write plain YAML")

    def mapping(self, node: yaml.MappingNode, path: KeyPath, merging: int = 0) -> dict[str, object]:
        self.values += 1
        if merging > MAX_DEPTH or self.values > MAX_VALUES:
            raise self.document.error(
                path[:3], "its aliases (*name) multiply or contain themselves; write the values out"
            )
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                for other in self.merged(value_node, path):
                    merged = self.mapping(other, path, merging + 1) | merged
        return merged | self.own(node, path)

    def own(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        """The keys of the mapping itself, which win over those it merges."""
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue
            key, line = self.key(key_node), key_node.start_mark.line + 1
            inner = (*path, key)
            if key in found:
                first = self.document.lines[inner]
                self.document.lines[inner] = line
                raise self.document.error(inner, f"this key was given before, in line {first}; keep one of them")
            self.document.lines[inner] = line
            self.document.written.pop(inner, None)
            found[key] = self.value(value_node, inner)
        return found

    def merged(self, node: yaml.Node, path: KeyPath) -> list[yaml.MappingNode]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(each, yaml.MappingNode) for each in nodes):
            raise self.document.error(path, "'<<' takes an alias of a mapping, such as <<: *defaults")
        return list(nodes)

    def key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or _TOKEN.search(node.value):
            where = f"{self.document.name}:{node.start_mark.line + 1}"
            raise ConfigError(f"{where}: a key here is not plain text; write it out, such as 'monitors:'")
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> object:
        kind = node.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp") or (kind == "bool" and node.value.lower() not in ("true", "false")):
            return self.text(node.value, path)  # as of YAML 1.2 the country NO and the class "yes" are text
        if kind in ("null", "bool", "int", "float"):
            try:
                if len(node.value) > _LONGEST_NUMBER:
                    raise ValueError("no number is so long, and reading one takes ever longer")
                return yaml.constructor.SafeConstructor().construct_object(node)
            except (ValueError, LookupError, ArithmeticError, yaml.YAMLError) as exc:
                raise self.document.error(path, f"{node.value[:40]!r} cannot be read as {_tag(node)}") from exc
        raise self.document.error(path, f"the tag {_tag(node)} is not allowed; write plain YAML")

    def text(self, text: str, path: KeyPath) -> str:
        self.unterminated(text, path)
        if not _TOKEN.search(text):
            return text

        def reference(match: re.Match[str]) -> str:
            number = int(match.group(1))
            return self.references[number] if number < len(self.references) else match.group()

        self.document.written[path] = _TOKEN.sub(reference, text)
        return _TOKEN.sub(lambda match: self.resolve(reference(match), path), text)
