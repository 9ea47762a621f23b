"""The kinds of values that the configuration holds beside plain text and numbers."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from opmon.config.redaction import Address
from opmon.durations import duration, show_duration
from opmon.errors import InputError
from opmon.stores import scheme_of, store_url

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def folder_of(info: ValidationInfo) -> Path:
    """The folder that relative paths start from: the one of opmon.yaml."""
    return Path((info.context or {}).get("folder", "."))


def absolute(path: str, folder: Path) -> str:
    """The path below ``folder`` unless it is absolute, begins with ``~`` or is an address such as ``s3://…``.

    The file of a relative ``sqlite:///file`` is below ``folder`` too.
    """
    scheme, _, file = path.partition(":///")
    if scheme.startswith("sqlite") and file and not file.startswith(("/", ":memory:", "file:")):
        return f"{scheme}:///{(folder / Path(file).expanduser()).absolute()}"
    if not path or _SCHEME.match(path):
        return path
    joined = folder / Path(path).expanduser()
    return f"{joined}/" if path.endswith("/") and len(path) > 1 else str(joined)


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def whole(value: object) -> object:
    _no_boolean(value)
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,2}", value):
        return float(value)  # 1e6 is text in YAML 1.1
    return value


def _share(value: float) -> float:
    if not 0 < value < 1:
        hint = f" (did you mean {value / 100:g}?)" if 1 < value < 100 else ""
        raise ValueError(f"must lie strictly between 0 and 1{hint}")
    return value


def _local_path(value: object, info: ValidationInfo) -> object:
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("must not be empty")
        return Path(absolute(value, folder_of(info)))
    return value


def _place(value: object, info: ValidationInfo) -> object:
    """A path of this machine, or the URL of an object store as it is."""
    if isinstance(value, str) and scheme_of(value) not in (None, "file"):
        try:
            return store_url(value)
        except InputError as exc:
            raise ValueError(str(exc)) from exc
    return _local_path(value.removeprefix("file://") if isinstance(value, str) else value, info)


def _database(value: object, info: ValidationInfo) -> object:
    address = _sqlite_below(value, info)
    if not isinstance(address, Address):
        return address
    url = address.get_secret_value()
    scheme, separator, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        scheme = "postgresql+psycopg"
    if not separator or scheme not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise ValueError("must be sqlite:///file.db or postgresql+psycopg://user:${DB_PASSWORD}@host/name")
    if scheme.startswith("postgresql"):
        _check_port(url)
    return Address(f"{scheme}://{rest}")


def _check_port(url: str) -> None:
    try:
        _ = urlsplit(url).port
    except ValueError as exc:
        raise ValueError(
            "cannot be read as an address; percent-encode special characters of the password (@ is %40, / is %2F)"
        ) from exc


def _tracking(value: object, info: ValidationInfo) -> object:
    address = _sqlite_below(value, info)
    if not isinstance(address, Address):
        return address
    uri = address.get_secret_value()
    if uri.startswith("databricks") or _SCHEME.match(uri):
        return address
    return Address(absolute(uri, folder_of(info)))


def _sqlite_below(value: object, info: ValidationInfo) -> object:
    """The address, with the file of a relative ``sqlite:///file`` placed in the folder of opmon.yaml."""
    if isinstance(value, Address):
        value = value.get_secret_value()
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise ValueError("must not be empty")
    return Address(absolute(value, folder_of(info)) if value.startswith("sqlite") else value)


def _show(address: Address) -> str:
    return str(address)


Duration = Annotated[timedelta, BeforeValidator(duration), PlainSerializer(show_duration)]
Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**15)]
Number = Annotated[float, BeforeValidator(_no_boolean)]
Share = Annotated[Number, AfterValidator(_share)]
"""Strictly between 0 and 1."""
Place = Annotated[Path | str, BeforeValidator(_place), PlainSerializer(str)]
"""A folder of this machine, or one of an object store by its URL."""
LocalPath = Annotated[Path, BeforeValidator(_local_path), PlainSerializer(str)]
DatabaseAddress = Annotated[Address, BeforeValidator(_database), PlainSerializer(_show)]
TrackingAddress = Annotated[Address, BeforeValidator(_tracking), PlainSerializer(_show)]
