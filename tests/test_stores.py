"""Object stores by their URL: what is one, what lies below it, and a store that speaks S3."""

from __future__ import annotations

import pytest

from opmon.errors import InputError, UnavailableError
from opmon.stores import StoreFolder, open_filesystem, store_url


def put(folder: str, name: str, data: bytes) -> None:
    filesystem, path = open_filesystem(folder)
    with filesystem.open_output_stream(f"{path}/{name}") as stream:
        stream.write(data)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "https://host/a",
            "must be a path or begin with file://, s3://, gs://, abfs://, abfss://, hdfs://; got https://",
        ),
        ("s3://key:secret@bucket/a", "must not hold credentials"),
        ("s3://key@bucket/a", "must not hold credentials"),
        ("abfs://box:secret@account.dfs.core.windows.net/a", "must not hold credentials"),
        ("s3://bucket/a?access_key=k&secret_key=s", "must not hold options: an endpoint is read from AWS_ENDPOINT_URL"),
        ("s3:///a", "names no bucket"),
        ("gs://bucket/../other", "must not hold '..'"),
    ],
)
def test_what_is_no_url_of_a_store_is_refused_without_its_secrets(given: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        store_url(given)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value).replace("AWS_SECRET", "")


def test_a_container_of_an_account_is_no_credential() -> None:
    url = "abfs://box@account.dfs.core.windows.net/a"
    assert store_url(f"{url}/") == url


OUTSIDE = ["picture/a", "pictures2/a", "pictures/../a", "pictures/"]


@pytest.mark.parametrize(
    "name", [*(f"s3://bucket/{each}" for each in OUTSIDE), "gs://bucket/pictures/a", "../a", "a/../../b", "/a", ""]
)
def test_nothing_outside_of_a_folder_has_a_path(name: str) -> None:
    assert StoreFolder("s3://bucket/pictures").path_of(name) is None


def test_an_object_is_read_whole_or_says_why_not(bucket: str) -> None:
    put(f"{bucket}/deep", "in/a b?c=d%.bin", b"12345")
    folder = StoreFolder(f"{bucket}/deep")
    for name in ("in/a b?c=d%.bin", f"{bucket}/deep/in/a b?c=d%.bin"):
        path = folder.path_of(name)
        assert path is not None
        assert folder.read(path, 5) == b"12345"
    assert folder.read("in/a b?c=d%.bin", 4) == "an object above 4 bytes"
    assert folder.read("in/b", 5) == "an object that is not there"
    assert StoreFolder("s3://no-such-bucket").read("b", 5) == "an object that is not there"


def test_a_store_that_is_away_is_no_matter_of_one_object(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match=rf"{bucket} does not answer: .*onnect"):
        StoreFolder(bucket).read("a", 5)
