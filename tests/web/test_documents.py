"""The documents that come with opmon can be read beside its pages."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest

Clients = Callable[..., httpx.Client]


def test_every_document_is_rendered(client_of: Clients) -> None:
    ann = client_of(name="ann")
    links = re.findall(r'href="(/docs/[\w-]+)"', ann.get("/docs").text)
    assert len(links) >= 8
    for link in links:
        answer = ann.get(link)
        assert answer.status_code == 200
        assert answer.text.count("<h1") == 1
    assert "<table>" in ann.get("/docs/labelling").text or "<pre tabindex" in ann.get("/docs/labelling").text


def test_documents_lead_to_each_other(client_of: Clients) -> None:
    page = client_of(name="ann").get("/docs/pages").text
    assert 'href="/docs/labelling"' in page
    assert "](" not in page


@pytest.mark.parametrize("name", ["nothing", "..%2F..%2Fsecrets", "reference.md"])
def test_nothing_else_is_a_document(client_of: Clients, name: str) -> None:
    answer = client_of(name="ann").get(f"/docs/{name}")
    assert answer.status_code == 404
    assert "there is no" in answer.text or "nothing has this address" in answer.text


def test_a_long_page_goes_out_compressed_and_a_picture_does_not(client_of: Clients) -> None:
    ann = client_of(name="ann")
    page = ann.get("/docs/reference")
    assert page.headers["content-encoding"] == "gzip"
    assert int(page.headers["content-length"]) < len(page.content) / 3
    task = ann.post("/api/v1/monitors/digits/take", json={}).json()["tasks"][0]
    address = next(field["url"] for field in task["fields"] if field["kind"] == "picture")
    assert "content-encoding" not in ann.get(address).headers


def test_pictures_of_documents_are_shown(client_of: Clients) -> None:
    client = client_of(name="ann")
    page = client.get("/docs/concepts").text
    for name in re.findall(r'src="/docs/([\w-]+)\.svg" alt="[^"]{10,}"', page):
        answer = client.get(f"/docs/{name}.svg")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.text.startswith("<svg")
    assert page.count("<img") == 2
    assert client.get("/docs/nothing.svg").status_code == 404
