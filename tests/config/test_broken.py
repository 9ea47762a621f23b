"""Wrong configurations: each is told in one or two lines that name the place, the key, the value, what is allowed."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmon.config import load, render_example
from opmon.config.settings import checked
from opmon.config.yaml_text import parse
from opmon.errors import ConfigError
from tests.patience import LONGEST

MONITOR = """\
monitors:
  digits:
    model: models:/digits@champion
    source: {path: production/}
"""
ENVIRONMENT = {"HOOK": "https://hooks.example.com/T0/very-private", "WORD": "open-sesame-123"}


def with_monitor(*lines: str) -> str:
    return MONITOR + "".join(f"    {line}\n" for line in lines)


BROKEN: dict[str, tuple[str | bytes, list[str]]] = {
    # places
    "pictures of the web": (
        with_monitor("inputs: {image: {column: photo, folder: 'https://shop.example.com/photos'}}"),
        ["opmon.yaml:5", "inputs.image.folder", "file://, s3://, gs://, abfs://", "https://"],
    ),
    "pictures behind a password": (
        with_monitor("inputs: {image: {column: photo, folder: 's3://me:${WORD}@shop/photos'}}"),
        ["inputs.image.folder", "must not hold credentials", "AWS_ACCESS_KEY_ID"],
    ),
    # the file itself
    "empty": ("", ["opmon.yaml", "is empty", "opmon init"]),
    "comments only": ("# nothing\n\n", ["is empty", "opmon init"]),
    "list as root": ("- a\n- b\n", ["opmon.yaml:1", "a list", "monitors:"]),
    "text as root": ("just text\n", ["a single value", "monitors:"]),
    "tab": ("monitors:\n\tdigits: 1\n", ["opmon.yaml:2", "tab", "spaces"]),
    "not closed": ("monitors: {digits: [1, 2\n", ["opmon.yaml:2", "not readable as YAML"]),
    "colon in text": ("monitors:\n  digits:\n    model: a: b\n", ["opmon.yaml:3", "quotes"]),
    "two documents": (MONITOR + "---\nmore: 1\n", ["not readable as YAML", "document"]),
    "not UTF-8": (MONITOR.encode() + b"state: caf\xe9\n", ["opmon.yaml:5", "UTF-8", "0xe9"]),
    "UTF-16": (MONITOR.encode("utf-16"), ["UTF-8"]),
    "control character": (MONITOR + 'state: "a\x07b"\n', ["opmon.yaml:5", "U+0007"]),
    "too large": (MONITOR + "#" * 1_000_001, ["larger than 1,000,000 bytes"]),
    "too deep": ("a: " + "[" * 500 + "]" * 500, ["opmon.yaml:1", "nested deeper than 40"]),
    "too many values": ("a: [" + "1," * 200_000 + "]", ["more than 50,000 values"]),
    "billion laughs": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{name}: &{name} [{','.join([f'*{other}'] * 9)}]\n" for other, name in pairwise("abcdefgh")),
        ["aliases", "multiply"],
    ),
    "alias of itself": ("monitors: &a\n  digits: *a\n", ["aliases", "themselves"]),
    "merge of itself": ("monitors: &a\n  <<: *a\n", ["aliases", "themselves"]),
    "merge of text": ("monitors:\n  <<: text\n", ["monitors", "<<: *defaults"]),
    "unknown alias": ("monitors: *nowhere\n", ["opmon.yaml:1", "nowhere"]),
    "object tag": ("monitors: !!python/object/apply:os.system ['true']\n", ["monitors", "tag", "not allowed"]),
    "own tag": (with_monitor("seed: !secret 3"), ["monitors.digits.seed", "tag !secret"]),
    "duplicate key": (with_monitor("seed: 1", "seed: 2"), ["opmon.yaml:6", "monitors.digits.seed", "line 5"]),
    "key that is a list": ("? [a, b]\n: 1\n", ["opmon.yaml:1", "not plain text"]),
    "integer of nothing": (with_monitor("seed: !!int ''"), ["monitors.digits.seed", "cannot be read as !!int"]),
    # keys
    "no monitors": ("database: sqlite:///x.db\n", ["monitors", "is required"]),
    "empty monitors": ("monitors: {}\n", ["monitors", "at least one monitor"]),
    "monitors is a list": ("monitors: [digits]\n", ["opmon.yaml:1: monitors", "must hold keys"]),
    "monitor is text": ("monitors: {digits: yes please}\n", ["monitors.digits", "must hold keys", "'yes please'"]),
    "monitor name": ("monitors: {a/b: {}}\n", ["monitors.a/b", "letters, digits"]),
    "unknown root key": (MONITOR + "databse: x\n", ["opmon.yaml:5: databse", "did you mean 'database'"]),
    "unknown monitor key": (with_monitor("treads: 4"), ["opmon.yaml:5", "monitors.digits.treads", "'threads'"]),
    "unknown deep key": (
        with_monitor("round: {min_input: 5}"),
        ["monitors.digits.round.min_input", "'min_inputs'", "max_age, max_inputs"],
    ),
    "derived key": (with_monitor("name: x"), ["monitors.digits.name", "no such key"]),
    "no model": ("monitors: {digits: {source: {path: x}}}\n", ["monitors.digits.model", "is required"]),
    "no source": ("monitors: {digits: {model: models:/a/1}}\n", ["monitors.digits.source", "is required"]),
    # values
    "model": (MONITOR.replace("models:/digits@champion", "digits"), ["digits.model", "models:/name@alias", "'digits'"]),
    "model without version": (MONITOR.replace("@champion", ""), ["digits.model", "models:/name/3", "'models:/digits'"]),
    "problem": (
        with_monitor("problem: clustering"),
        ["problem", "'classification', 'regression', 'multilabel' or 'judged'", "'clustering'"],
    ),
    "device": (with_monitor("device: gpu"), ["digits.device", "'auto', 'cpu' or 'cuda'", "'gpu'"]),
    "provider": (
        with_monitor("device: {providers: [cuta]}"),
        ["digits.device", "no provider 'cuta' (did you mean 'cuda'?)", "tensorrt"],
    ),
    "no provider": (with_monitor("device: {options: {cuda: {}}}"), ["digits.device.providers", "is required"]),
    "provider key": (with_monitor("device: {provider: [cuda]}"), ["digits.device.provider", "'providers'"]),
    "options without their provider": (
        with_monitor("device: {providers: [cuda], options: {device_id: 1}}"),
        ["digits.device.options", "by provider, such as {cuda: {device_id: 1}}"],
    ),
    "option of memory": (
        with_monitor("device: {providers: [cuda], options: {cuda: {gpu_mem_limit: 4 T}}}"),
        ["digits.device", "gpu_mem_limit must be bytes, such as 4 GB; got '4 T'"],
    ),
    "threads zero": (with_monitor("threads: 0"), ["digits.threads", "must be >= 1", "got 0"]),
    "threads text": (with_monitor("threads: many"), ["digits.threads", "whole number", "'many'"]),
    "threads boolean": (with_monitor("threads: true"), ["digits.threads", "must be a number", "got true"]),
    "threads half": (with_monitor("threads: 1.5"), ["digits.threads", "whole number", "got 1.5"]),
    "seed boolean": (with_monitor("seed: true"), ["digits.seed", "number", "got true"]),
    "level": (with_monitor("level: 95"), ["digits.level", "between 0 and 1", "0.95", "got 95"]),
    "level nan": (with_monitor("level: .nan"), ["digits.level", "finite", "got nan"]),
    "classes boolean": (with_monitor("classes: [true, false]"), ["digits.classes[0]", "quotes", "got true"]),
    "spelling boolean": (
        with_monitor("classes: {ok: [0, false], fraud: [1, x]}"),
        ["opmon.yaml:5", "digits.classes.ok[1]", "put true and false in quotes", "got false"],
    ),
    "classes twice": (with_monitor("classes: [a, a]"), ["digits.classes", "each once"]),
    "a class with nothing else": (with_monitor("classes: {a: 0}"), ["digits.classes", "at least two classes"]),
    "one spelling of two classes": (
        with_monitor("classes: {a: [0, x], b: [1, x]}"),
        ["digits.classes", "tell classes apart", "'x' cannot stand for both 'a' and 'b'"],
    ),
    "a spelling that is a class": (with_monitor("classes: {a: 0, b: a}"), ["digits.classes", "both 'a' and 'b'"]),
    "a threshold of nothing": (with_monitor("columns: {threshold: 0.5}"), ["columns.threshold", "name its column too"]),
    "scoring without trust": (with_monitor("scoring: {by: flavor}"), ["digits.scoring.trust", "true", "runs code"]),
    "scoring way": (with_monitor("scoring: {by: pyfunc}"), ["digits.scoring.by", "'onnx', 'logged' or 'flavor'"]),
    "scoring env": (with_monitor("scoring: {by: flavor, trust: true, env: conda}"), ["scoring.env", "current, uv, or"]),
    "scoring memory": (
        with_monitor("scoring: {by: flavor, trust: true, memory: much}"),
        ["scoring.memory", "must be bytes, such as 4 GB", "'much'"],
    ),
    "logged without an answer": (
        with_monitor("scoring: {by: logged}"),
        ["digits.columns", "needs prediction, the column with the answer, or columns.scores"],
    ),
    "logged regression": (
        with_monitor("scoring: {by: logged}", "problem: regression", "columns: {scores: p}"),
        ["digits.columns", "needs prediction, the column with the answer"],
    ),
    "scores of a model": (with_monitor("columns: {scores: p}"), ["digits.columns", "scoring.by is onnx"]),
    "logged with a graph": (
        with_monitor("scoring: {by: logged}", "columns: {prediction: y}", "variables: [dsa]"),
        ["digits.variables", "'dsa' comes from the model's ONNX graph", "variables: {risk: score_column}"],
    ),
    "logged without scores": (
        with_monitor("scoring: {by: logged}", "columns: {prediction: y}", "sampler: {type: sups, variable: margin}"),
        ["digits.variables", "'margin' comes from"],
    ),
    "logged with a layer": (
        with_monitor("scoring: {by: logged}", "columns: {prediction: y}", "sampler: {type: ces}"),
        ["digits.sampler", "'ces' looks at a layer"],
    ),
    "a column turned round": (
        with_monitor("variables: {risk: {column: p, suspicious: lo}}"),
        ["digits.variables.suspicious", "'high' or 'low'"],
    ),
    "a variable of nothing": (with_monitor("variables: {risk: {}}"), ["variables.column", "is required"]),
    "duration": (with_monitor("round: {max_age: 1 hour}"), ["digits.round.max_age", "15m, 1h", "'1 hour'"]),
    "duration number": (with_monitor("labels: {max_wait: 60}"), ["digits.labels.max_wait", "its unit", "got 60"]),
    "duration endless": (with_monitor(f"labels: {{max_wait: {'9' * 60}w}}"), ["labels.max_wait", "at most 3660d"]),
    "huge integer": (with_monitor(f"seed: {'9' * 5000}"), ["digits.seed", "cannot be read as !!int"]),
    "round order": (with_monitor("round: {max_inputs: 10}"), ["round.max_inputs", "min_inputs, which is 1000", "10"]),
    "both inputs": (with_monitor("inputs: {features: [a], tensor: b}"), ["inputs.tensor", "not both"]),
    "column number": (with_monitor("columns: {id: 7}"), ["columns.id", "must be text", "got 7"]),
    "both schedules": (with_monitor('schedule: {every: 1m, cron: "* * * * *"}'), ["digits.schedule", "either every"]),
    "cron": (with_monitor('schedule: {cron: "61 * * * *"}'), ["schedule.cron", "five fields", "'61 * * * *'"]),
    "cron weekday": (with_monitor('schedule: {cron: "0 0 * * 1-5"}'), ["schedule.cron", "mon-fri", "'0 0 * * 1-5'"]),
    "cron jitter": (
        with_monitor('schedule: {cron: "0,15 6 * * *", jitter: 20m}'),
        ["schedule.jitter", "shorter than the shortest time between two of cron, 15m", "'20m'"],
    ),
    "cron never": (with_monitor('schedule: {cron: "0 0 30 2 *"}'), ["schedule.cron", "never comes", "'0 0 30 2 *'"]),
    "silent after": (with_monitor("schedule: {every: 1s, silent_after: 1e6}"), ["schedule.silent_after", "10000"]),
    "regression by confidence": (
        with_monitor("problem: regression", "sampler: {type: sups, variable: confidence}"),
        ["digits.sampler", "'confidence'", "srs"],
    ),
    "database": (MONITOR + "database: mysql://u:geheim@h/d\n", ["database", "postgresql+psycopg://", "u:***@h"]),
    "database port": (MONITOR + "database: postgresql://u:p/w@h/d\n", ["database", "percent-encode"]),
    "state": (MONITOR + "state: ''\n", ["state", "must not be empty"]),
    "no proxy": (MONITOR + "web: {identity: {header: X-User, trusted: []}}\n", ["trusted", "must hold at least 1"]),
    "issuer": (
        MONITOR + "web: {url: 'https://a', oidc: {client_id: a, issuer: 'https://b/.well-known/openid-configuration'}}\n",
        ["web.oidc.issuer", "must end before /.well-known/"],
    ),
    # plugins
    "sampler": (with_monitor("sampler: {type: supps}"), ["sampler.type", "'sups'", "srs", "'supps'"]),
    "sampler parameter": (with_monitor("sampler: {type: sups, varible: dsa}"), ["sampler.varible", "'variable'"]),
    "sampler budget": (with_monitor("sampler: {budget: -5}"), ["digits.sampler.budget", ">= 1", "got -5"]),
    "sampler list": (with_monitor("sampler: [sups]"), ["digits.sampler", "must hold keys"]),
    "source parameter": (MONITOR.replace("path:", "pth:"), ["opmon.yaml:4", "source.pth", "'path'"]),
    "source type": (MONITOR.replace("{path", "{type: kafka, path"), ["source.type", "no such source", "files"]),
    "rule without type": (with_monitor("rules: [{threshold: 0.9}]"), ["rules[0].type", "accuracy_below"]),
    "rule is text": (with_monitor("rules: [accuracy_below]"), ["rules[0]", "must hold keys", "'accuracy_below'"]),
    "rules is a mapping": (with_monitor("rules: {type: accuracy_below}"), ["digits.rules", "must be a list"]),
    "rule threshold": (
        with_monitor("rules:", "  - type: accuracy_below", "    threshold: 92"),
        ["opmon.yaml:7", "rules[0].threshold", "did you mean 0.92", "92"],
    ),
    "rule threshold text": (
        with_monitor("rules: [{type: accuracy_below, threshold: high}]"),
        ["rules[0].threshold", "must be a number", "'high'"],
    ),
    "rule without threshold": (with_monitor("rules: [{type: accuracy_below}]"), ["rules[0].threshold", "is required"]),
    "rule names": (
        with_monitor("rules: [{type: accuracy_below, threshold: 0.9}, {type: accuracy_below, threshold: 0.8}]"),
        ["digits.rules", "'accuracy-below'", "name"],
    ),
    "action": (with_monitor("actions: [{type: web_hook}]"), ["actions[0].type", "'webhook'", "registry_tag"]),
    "action names": (with_monitor("actions: [{type: registry_tag}, {type: registry_tag}]"), ["'registry_tag'", "name"]),
    "webhook url": (with_monitor("actions: [{type: webhook, url: example.com}]"), ["actions[0].url", "https://"]),
    "webhook http": (with_monitor("actions: [{type: webhook, url: 'http://a.example'}]"), ["actions[0].url", "allow"]),
    "webhook allow": (with_monitor("actions: [{type: webhook, url: 'https://a', allow: [10.0.0.0/99]}]"), ["/99"]),
    "webhook timeout": (with_monitor("actions: [{type: webhook, url: 'https://a', timeout: 1h}]"), ["number"]),
    # the environment
    "unset variable": (MONITOR + "database: ${NOWHERE}\n", ["opmon.yaml:5: database", "NOWHERE", "not set"]),
    "reference not closed": (MONITOR + "database: ${NOWHERE\n", ["database", "not closed"]),
    "reference in a reference": (MONITOR + "database: ${A:-${B}}\n", ["database"]),
    "reference name": (MONITOR + "database: ${not a name}\n", ["database", "${not a name}", "${NAME:-default}"]),
    "reference as key": (MONITOR + "${WORD}: 1\n", ["opmon.yaml:5", "not plain text"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file_is_told_in_plain_words(case: str, tmp_path: Path) -> None:
    text, wanted = BROKEN[case]
    path = tmp_path / "opmon.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as raised:
        load(path, ENVIRONMENT)
    message = str(raised.value)
    assert [word for word in wanted if word not in message] == [], message
    assert len(message.splitlines()) <= 2
    assert len(message) < 700
    assert "opmon.yaml" in message


def test_there_are_enough_broken_files() -> None:
    assert len(BROKEN) >= 30


SECRETS = {
    "webhook secret": 'actions: [{type: webhook, url: "https://a.example", secret: "${WORD}"}]',
    "webhook secret written out": "actions: [{type: webhook, url: 'https://a.example', secret: open-sesame-123}]",
    "webhook url": "actions: [{type: webhook, url: 'http://u:${WORD}@a.example'}]",
    "webhook header": "actions: [{type: webhook, url: 'https://a', headers: {Authorization: ['${WORD}']}}]",
    "number": "threads: ${WORD}",
    "choice": "device: ${WORD}",
    "plugin type": "sampler: {type: '${WORD}'}",
    "plugin parameter": "rules: [{type: accuracy_below, threshold: '${WORD}'}]",
}


@pytest.mark.parametrize("case", SECRETS)
def test_an_error_never_holds_a_secret(case: str, tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(with_monitor(SECRETS[case]))
    with pytest.raises(ConfigError) as raised:
        load(path, ENVIRONMENT)
    assert "monitors.digits" in str(raised.value)
    error: BaseException | None = raised.value
    while error is not None:
        assert ENVIRONMENT["WORD"] not in str(error)
        error = error.__cause__ or error.__context__


def test_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no .*nowhere\.yaml.*opmon init"):
        load(tmp_path / "nowhere.yaml", {})


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder; .*opmon\.yaml"):
        load(tmp_path, {})


def test_a_second_problem_is_named_in_a_second_line(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(with_monitor("threads: 0", "level: 2", "device: gpu"))
    with pytest.raises(ConfigError) as raised:
        load(path, {})
    first, second = str(raised.value).splitlines()
    assert "threads" in first or "device" in first
    assert second.startswith("also wrong: ")
    assert "monitors.digits.level" in second


def test_a_list_is_not_too_short_because_of_what_is_wrong_in_it(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(MONITOR + "web: {identity: {header: X-User, trusted: [10.0.0.0/99]}}\n")
    with pytest.raises(ConfigError) as raised:
        load(path, {})
    assert "web.identity.trusted[0]" in str(raised.value)
    assert "also wrong" not in str(raised.value)


def test_an_override_is_blamed_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text(MONITOR)
    with pytest.raises(ConfigError) as raised:
        load(path, {"OPMON_DATABASE": "oracle://u:tiger@h/d"})
    assert str(raised.value).startswith("OPMON_DATABASE: must be sqlite:///file.db")
    assert "tiger" not in str(raised.value)


JUNK = [
    *("", "null", "[]", "{}", "yes", "-1", "1e999", ".inf", "'x", "[1, {a: 2}]", "!!binary aGk=", "!!set {a}", "*a"),
    *("${X}", "${WORD}", "\t", "0x1F", "1:30", "2026-01-01", "- - -", "|", "%", "@", "=", "\ue0009\ue001", "!!bool q"),
]


@given(st.data())
def test_whatever_is_changed_in_the_example_it_loads_or_is_told_plainly(data: st.DataObject) -> None:
    lines = render_example().split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        key, colon, _ = lines[number].partition(":")
        lines[number] = data.draw(
            st.sampled_from([f"{key}{colon} {junk}" for junk in JUNK] + ["", f"  {lines[number]}"])
        )
    told = ""
    try:
        checked(parse("\n".join(lines), "opmon.yaml", ENVIRONMENT), Path())
    except ConfigError as exc:
        told = str(exc)
    assert len(told.splitlines()) <= 2
    assert ENVIRONMENT["WORD"] not in told


def test_reading_a_hostile_file_is_quick_and_small(tmp_path: Path) -> None:
    path = tmp_path / "opmon.yaml"
    path.write_text("a: " + "[" * 999_000)
    script = (
        "import resource, sys, opmon.config, opmon.errors\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        f"try: opmon.config.load({str(path)!r}, {{}})\n"
        "except opmon.errors.ConfigError as exc: print(exc)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONGEST, check=True)
    assert "nested deeper" in done.stdout
