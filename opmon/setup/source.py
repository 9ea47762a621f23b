"""What ``opmon init --source`` names: files, a Delta table, a table of a database, an experiment, any source's keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow.fs import FileType

from opmon.abc import Source
from opmon.config import Settings
from opmon.config.document import from_mapping
from opmon.config.fields import absolute
from opmon.config.yaml_text import parse
from opmon.errors import InputError, OpmonError
from opmon.redaction import shown_address
from opmon.stores import SCHEMES, open_filesystem, scheme_of

Keys = Mapping[str, object]
"""The keys below ``source:``, as opmon.yaml has them."""
_MLFLOW = "mlflow:"


def keys_of(text: str, folder: Path, tracking_uri: str) -> Keys:
    """The keys that read what ``text`` names, for an opmon.yaml in ``folder``; paths in the text begin where we are.

    >>> keys_of("logs/*.parquet", Path.cwd(), "")
    {'path': 'logs/*.parquet'}
    """
    if text.lstrip().startswith("{"):
        return parse(text.replace("${", "$${"), "--source", {}).data  # references stay as they are written
    if text.startswith(_MLFLOW):
        server = "${MLFLOW_TRACKING_URI}" if "@" in tracking_uri else tracking_uri  # never a password
        return {"type": "mlflow", "experiment": text.removeprefix(_MLFLOW), "tracking_uri": server}
    scheme = scheme_of(text)
    if scheme not in (None, "file", "http", "https", *SCHEMES):
        return _of_table(text, folder)
    path = text if scheme else below(Path(text), folder)
    return {"type": "delta", "path": path} if _is_delta(text) else {"path": path}


def source_of(keys: Keys, folder: Path) -> Source:
    """The source with these keys, as a monitor of an opmon.yaml in ``folder`` has it."""
    monitor = {"model": "models:/model/1", "source": dict(keys)}
    given = {"database": "sqlite:///opmon.db", "monitors": {"model": monitor}}
    return Settings.from_mapping(given, folder).monitor("model").source.plugin


def below(path: Path, folder: Path) -> str:
    """A path as a file in ``folder`` says it."""
    whole = path.absolute()
    return str(whole.relative_to(folder.absolute())) if whole.is_relative_to(folder.absolute()) else str(whole)


def _of_table(text: str, folder: Path) -> Keys:
    from opmon.sources.sql.guessing import cursor_of

    address, _, table = text.rpartition("#")
    if not address or not table:
        raise InputError(
            f"--source {shown_address(text)} names no table: write it behind the address, such as "
            f"postgresql+psycopg://reader:${{LOG_PASSWORD}}@db/log#requests"
        )
    if (urlsplit(address).password or "${").partition("${")[0]:
        raise InputError(
            f"--source {shown_address(address)} holds a password, which would stand in opmon.yaml: put it into the "
            f"environment, and write ${{LOG_PASSWORD}} in its place (in single quotes, so that the shell leaves it)"
        )
    scheme, _, file = address.partition(":///")
    if scheme.startswith("sqlite") and file:
        address = f"{scheme}:///{below(Path(file), folder)}"
    told = from_mapping({"database": address}, os.environ).data["database"]
    return {"type": "sql", "database": address, "table": table, "cursor": cursor_of(absolute(str(told), folder), table)}


def _is_delta(text: str) -> bool:
    """Whether a folder, here or in a store, is a table of Delta Lake."""
    if scheme_of(text) in (None, "file"):
        return (Path(text.removeprefix("file://")) / "_delta_log").is_dir()
    if "*" in text:
        return False
    try:
        filesystem, path = open_filesystem(text)
        return bool(filesystem.get_file_info(f"{path}/_delta_log").type == FileType.Directory)
    except (OpmonError, OSError):
        return False  # who reads it says what is wrong with it
