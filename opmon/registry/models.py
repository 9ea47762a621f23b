"""Model versions: finding one by its address, and fetching its ONNX file."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from opmon.abc import Converter, ModelFile, Network, VersionNotes
from opmon.errors import InputError, ModelError, NotFoundError, UnavailableError
from opmon.registry import cache
from opmon.registry.connection import Connection
from opmon.registry.originals import NETWORK, load_original, model_file, network, original_flavor, runs_code
from opmon.registry.signature import read_signature
from opmon.registry.translation import translated
from opmon.types import Document, ModelVersion
from opmon.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from sklearn.base import BaseEstimator

_ADDRESS = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[^/@]+))")
_CONVERTED = "-converted-3"
"""Ends with the number of the way in which models are converted: a new one is not content with files of the old."""
_LOGGED = re.compile(r"models:/(m-[^/]+)")


def resolve(
    connection: Connection, uri: str, known: dict[tuple[str, str, int], Document]
) -> tuple[ModelVersion, Document, VersionNotes]:
    """The version that an address means now, what its ``MLmodel`` file says, read once, and what is written on it.

    ``known`` gathers what those of versions say, by name, version, and when it was registered.
    """
    address = _ADDRESS.fullmatch(uri)
    if address is None:
        raise InputError(
            f"{uri!r} is not the address of a registered model; write models:/name@alias, models:/name/3 or "
            f"models:/name/latest"
        )
    name, alias, version = address["name"], address["alias"], address["version"]
    client = connection.client
    try:
        with translated(f"looking up {uri}", connection.where):
            if alias is not None:
                found = connection.models.get_model_version_by_alias(name, alias)
            elif version == "latest":
                found = _newest(client, name)
            elif version.isdigit():
                found = connection.models.get_model_version(name, version)
            else:
                raise NotFoundError(f"{uri}: {version!r} is neither a version number nor 'latest'")
    except (NotFoundError, InputError) as exc:
        raise NotFoundError(f"there is no model version {uri}. {_what_there_is(connection, name)}") from exc
    if found.status != "READY":
        raise ModelError(
            f"{uri} is {found.status} in the registry; wait until its registration is done, or do it again"
        )
    key = (name, str(found.version), int(found.creation_timestamp or 0))
    described = known.get(key) or _described(connection, found, uri)
    if described:
        known[key] = described
    flavors = tuple(sorted(described.get("flavors") or {}))
    model = ModelVersion(
        name,
        str(found.version),
        flavors,
        found.run_id or None,
        getattr(found, "model_id", None) or described.get("model_id") or None,
        _moment(found),
    )
    return model, described, notes_of(found)


def _moment(found: RegisteredVersion) -> datetime | None:
    at = found.creation_timestamp
    return datetime.fromtimestamp(at / 1000, UTC) if at else None


def notes_of(found: RegisteredVersion) -> VersionNotes:
    """What is written on a version that MLflow gave."""
    return VersionNotes({str(key): str(value) for key, value in found.tags.items()}, found.description or "")


def fetch_onnx(
    connection: Connection,
    model: ModelVersion,
    described: Document,
    into: Path,
    converter: Converter | None,
    trusted: bool,
) -> Path:
    """The model's ONNX file on this machine; downloaded, or made by ``converter``, once for each version."""
    flavors = described.get("flavors") or {}
    if "onnx" in flavors:
        return _fetch(connection, model, into, "", Path(flavors["onnx"].get("data", "model.onnx")))
    if converter is None or original_flavor(flavors) is None or (runs_code(flavors) and not trusted):
        raise ModelError(_no_onnx(model, flavors))
    folder, file = _folder(model, into, _CONVERTED), Path("model.onnx")
    if not cache.take(folder, file):
        original = load(connection, model, described, into)
        with _kept(model, folder), cache.fetching(folder) as temporary:
            ready = Path(temporary) / "converted"
            ready.mkdir()
            (ready / file).write_bytes(converter(original, read_signature(described)))
            _move(ready, folder, Path(temporary) / "leftover", file)
    return folder / file


def load(
    connection: Connection, model: ModelVersion, described: Document, into: Path
) -> BaseEstimator | ModelFile | Network:
    """The original of a converted model: its file where that is data, how a network is asked, else unpickled."""
    flavors, folder = described.get("flavors") or {}, fetch_original(connection, model, into)
    name = original_flavor(flavors)
    if name is None:
        raise ModelError(f"{model.uri} has no flavor that an ONNX file is made of (it has: {', '.join(flavors)})")
    if name == NETWORK:
        return network(folder)
    return load_original(folder, name) if runs_code(flavors) else model_file(folder, flavors)


def fetch_original(connection: Connection, model: ModelVersion, into: Path) -> Path:
    """The folder with the model as it was logged, on this machine; downloaded once for each version."""
    return _fetch(connection, model, into, "-original", Path("MLmodel")).parent


def _fetch(connection: Connection, model: ModelVersion, into: Path, kind: str, file: Path) -> Path:
    """A file of the model; the folder that is kept holds them all."""
    if file.is_absolute() or ".." in file.parts:
        raise ModelError(
            f"{model.uri} names {str(file)!r} as its ONNX file, which is outside of the model; log it again"
        )
    folder = _folder(model, into, kind)
    if not cache.take(folder, file):
        with _kept(model, folder), cache.fetching(folder) as temporary:
            whole = Path(temporary) / "model"
            whole.mkdir()
            with translated(f"downloading {model.uri}", connection.where):
                connection.fetch(_location(connection, model.name, model.version), "", whole)
            _move(whole, folder, Path(temporary) / "leftover", file)
    if not (folder / file).is_file():
        raise ModelError(f"{model.uri} has no file {str(file)!r} though its MLmodel names it; log the model again")
    return folder / file


def _folder(model: ModelVersion, into: Path, kind: str) -> Path:
    """The version's own folder: what was registered under its name and number at another time has another."""
    at = None if model.registered_at is None else model.registered_at.isoformat()
    known = hashlib.sha256(f"{model.run_id} {model.model_id} {at}".encode()).hexdigest()[:8]
    return cache.folder_of(into, model.name) / f"{model.version}-{known}{kind}"


@contextmanager
def _kept(model: ModelVersion, folder: Path) -> Iterator[None]:
    """A file system that does not take the model is told as such."""
    try:
        yield
    except OSError as exc:
        raise UnavailableError(
            f"{model.uri} cannot be kept in {folder}: {exc}. Is the disk full, or not ours?"
        ) from exc


def _move(ready: Path, folder: Path, leftover: Path, file: Path) -> None:
    """Put the folder in its place, unless another process was quicker with the same content."""
    if (folder / file).is_file():
        return
    if folder.exists():  # without the file: not made by us
        folder.rename(leftover)
    try:
        ready.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def _described(connection: Connection, found: RegisteredVersion, uri: str) -> Document:
    """What the version's ``MLmodel`` file says; nothing of one that has no files, such as a remote API."""
    with tempfile.TemporaryDirectory() as temporary:
        try:
            with translated(f"reading MLmodel of {uri}", connection.where):
                location = _location(connection, found.name, found.version)
                path = connection.fetch(location, "MLmodel", Path(temporary))
            described = yaml.safe_load(path.read_text(encoding="utf-8"))
        except NotFoundError:
            return {}
        except (UnicodeDecodeError, yaml.YAMLError) as exc:
            raise ModelError(f"{uri} has no readable MLmodel file: {exc}. Log and register the model again.") from exc
    if not isinstance(described, dict):
        raise ModelError(f"the MLmodel file of {uri} is not a mapping; log and register the model again")
    return described


def _location(connection: Connection, name: str, version: str) -> str:
    """Where the files of a version are."""
    uri = str(connection.client.get_model_version_download_uri(name, str(version)))
    logged = _LOGGED.fullmatch(uri)
    return str(connection.client.get_logged_model(logged[1]).artifact_location) if logged else uri


def _newest(client: MlflowClient, name: str) -> RegisteredVersion:
    versions = _versions(client, name)
    if not versions:
        raise NotFoundError(f"{name!r} has no versions")
    return versions[0]


def _versions(client: MlflowClient, name: str) -> list[RegisteredVersion]:
    """The newest versions of a model, newest first."""
    quoted = name.replace("'", "''")
    found = client.search_model_versions(f"name='{quoted}'", max_results=100, order_by=["version_number DESC"])
    return sorted(found, key=lambda version: int(version.version), reverse=True)


def _what_there_is(connection: Connection, name: str) -> str:
    client = connection.client
    with translated("listing models", connection.where):
        names = [model.name for model in client.search_registered_models(max_results=200)]
        if name not in names:
            hint = did_you_mean(nearest(name, names))
            return f"The registry has no model {name!r}; it has: {', '.join(names[:20]) or 'none'}.{hint}"
        aliases = ", ".join(
            f"{alias} (version {number})" for alias, number in client.get_registered_model(name).aliases.items()
        )
        versions = ", ".join(str(version.version) for version in _versions(client, name)[:20])
    return f"Versions of {name!r}: {versions or 'none'}; aliases: {aliases or 'none'}."


def _no_onnx(model: ModelVersion, flavors: Document) -> str:
    if not flavors:
        return (
            f"{model.uri} has no files of a model. Judge what production logged (scoring: {{by: logged}}), or log the "
            f"model and register it again."
        )
    have = ", ".join(sorted(flavors))
    if original_flavor(flavors) == NETWORK:
        return (
            f"{model.uri} has no ONNX flavour (it has: {have}). Set scoring: {{by: onnx, trust: true}} on the monitor "
            f"to export the PyTorch one, which runs the code in it, or register an ONNX flavour "
            f"(mlflow.onnx.log_model)."
        )
    if runs_code(flavors):
        name = "scikit-learn" if "sklearn" in flavors else "pickled LightGBM"
        return (
            f"{model.uri} has no ONNX flavour (it has: {have}). Set convert_sklearn: true on the monitor to convert "
            f"the {name} one, which runs the code in it, or register an ONNX flavour (mlflow.onnx.log_model)."
        )
    return f"{model.uri} has no ONNX flavour (it has: {have}). Register one: mlflow.onnx.log_model."
