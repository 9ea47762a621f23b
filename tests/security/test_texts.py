"""Texts that people write and programs read: the configuration, conditions, questions, patterns; each as a bomb."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from opmon.config import load
from opmon.errors import ConfigError, InputError
from opmon.robustness.query.parse import parse as question
from opmon.where import parse

HEAD = "monitors:\n  m:\n    model: models:/m/1\n    source: {path: p}\n"
WORDS = "abcdefghij"
YAML = {
    "billion laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{name}: &{name} [{','.join([f'*{other}'] * 9)}]\n" for other, name in pairwise(WORDS)),
    "laughs by merging": "a: &a {x: 1}\n"
    + "".join(f"{name}: &{name} {{<<: [{','.join([f'*{other}'] * 9)}]}}\n" for other, name in pairwise(WORDS)),
    "laughs as keys": "a: &a [x]\n? *a\n: 1\n? [*a, *a]\n: 2\n",
    "itself": "a: &a [*a]\n",
    "merging itself": "a: &a {<<: *a}\n",
    "deep lists": "a: " + "[" * 100_000,
    "deep mappings": "a: " + "{a: " * 100_000,
    "deep dashes": "- " * 200_000 + "a",
    "deep questions": "? " * 200_000 + "a",
    "deep blocks": "".join(f"{' ' * k}a:\n" for k in range(1300)),
    "an object": HEAD + "state: !!python/object/apply:os.system ['touch /tmp/attacked']\n",
    "a name": HEAD + "state: !!python/name:os.system\n",
    "a module": HEAD + "state: !!python/module:antigravity\n",
    "a tag": HEAD + "state: !opmon x\n",
    "a local tag": "%TAG ! tag:yaml.org,2002:python/object/apply:\n---\na: !os.system [id]\n",
    "binary": HEAD + "state: !!binary aGVsbG8=\n",
    "a long scalar": "a: " + "x" * 100_000_000,
    "a long key": "x" * 900_000 + ": 1\n",
    "a long anchor": "a: &" + "x" * 900_000 + " 1\n",
    "many anchors": "".join(f"a{k}: &a{k} 1\n" for k in range(60_000)),
    "many documents": "---\n" * 200_000,
    "many directives": "%YAML 1.1\n" * 1000 + "--- a\n",
    "an endless version": "%YAML 1." + "9" * 900_000 + "\n--- a\n",
    "an endless number": HEAD + "web: {rate: " + "9" * 900_000 + "}\n",
    "an endless base 60": HEAD + "web: {rate: 1" + ":59" * 200_000 + "}\n",
    "an endless fraction": HEAD + "web: {rate: 1." + "9" * 900_000 + "}\n",
    "a number beyond all": HEAD + "web: {rate: 1" + "0" * 300 + "}\n",
    "infinite": HEAD + "web: {rate: .inf}\n",
    "a moment": HEAD + "web: {rate: 9999-99-99T99:99:99Z}\n",
    "key twice": HEAD + "state: a\nstate: b\n",
    "monitor twice": HEAD + "  m:\n    model: models:/other/1\n    source: {path: q}\n",
    "key twice by merging": HEAD + "web: {<<: {rate: 1, rate: 2}}\n",
    "references": "a: " + "${" * 300_000,
    "many references": "a: [" + "${X}," * 150_000 + "]",
    "a reference in itself": "a: ${A}\n",
    "no characters": HEAD + "state: \ud800\n".encode("utf-8", "surrogatepass").decode("latin-1"),
    "a comment without end": "# " + "x" * 990_000,
    "quotes without end": 'a: "' + "\\n" * 400_000,
    "a folded text": "a: >\n" + "  x\n\n" * 150_000 + "b: [",
}


@pytest.fixture(autouse=True)
def quick_and_small() -> Iterator[None]:
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    yield
    assert time.process_time() - began < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss < 400 * 1024


@pytest.mark.parametrize("name", YAML)
def test_a_configuration_that_is_a_bomb(tmp_path: Path, name: str) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(YAML[name], encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        load(path, {"A": "${A}", "X": "x" * 100})
    assert "opmon.yaml" in str(told.value)
    assert len(str(told.value)) < 3000
    assert not Path("/tmp/attacked").exists()


def test_a_configuration_that_never_ends() -> None:
    for path in ("/dev/zero", "/dev/full"):
        with pytest.raises(ConfigError):
            load(path, {})


TEXTS = {
    "parentheses": "(" * 100_000 + "a > 1" + ")" * 100_000,
    "some parentheses": "(" * 900 + "a > 1" + ")" * 900,
    "not": "not " * 100_000 + "a > 1",
    "some not": "not " * 400 + "a > 1",
    "and": " and ".join(["a > 1"] * 100_000),
    "chained": "a" + " > a" * 100_000,
    "a number": "a > " + "9" * 1_000_000,
    "a long number": "a > " + "9" * 1_900,
    "an exponent": "a > 1e999999999",
    "a fraction": "a > ." + "0" * 1_500 + "1e" + "9" * 300,
    "members": "a in (" + ",".join(["1"] * 100_000) + ")",
    "a name": "a" * 1_000_000 + " > 1",
    "a path": "a" + ".a" * 1_900 + " >",
    "an index": "a[" + "9" * 1_900 + "] >",
    "a quote": "a = '" + "''" * 1_000_000,
    "a short quote": "a = '" + "''" * 900,
    "a backquote": "`" * 1_001,
    "blanks": " " * 1_000_000 + "a",
    "zero": "a \x00 > 1",
    "right to left": "\u202ea > 1",
    "surrogates": "\ud800 > 1",
    "wide digits": "a > \uff11\uff12 x",
    "combining": "a" + "\u0301" * 1_500 + " >",
    "operators": "<>=" * 100_000,
    "lines": "a > 1\n" * 100_000,
    "python": "__import__('os').system('id')",
    "sql": "a = '' or 1=1; drop table rounds --",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("read", [parse, lambda text: question(text, ["a", "b"], 5)], ids=["condition", "question"])
def test_a_condition_that_is_a_bomb(name: str, read: Callable[[str], object]) -> None:
    """Refused in words, or understood; a number that is too large for one counts as infinite."""
    if name in ("a long number", "an exponent", "a fraction") and read is parse:
        read(TEXTS[name])
        return
    with pytest.raises(InputError) as told:
        read(TEXTS[name])
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize(
    "pattern", ["%a" * 1_900 + "b", "%" * 3_900, "_%" * 1_900, "(a+)+$", "[" * 3_000, "\\" * 3_001]
)
def test_a_pattern_that_takes_for_ever(pattern: str) -> None:
    """like has % and _ alone, and is met in time that goes with the length of the text."""
    import pyarrow as pa

    where = parse(f"a like '{pattern}'")
    assert len(where.mask(pa.record_batch({"a": ["a" * 20_000, "b" * 20_000, pattern]}))) == 3
