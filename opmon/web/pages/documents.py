"""The documents that come with opmon, to read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from opmon.web.markdown import html_of
from opmon.web.pages.asking import Somebody
from opmon.web.refused import Refused
from opmon.web.root import under
from opmon.web.templating import page

router = APIRouter()

_BESIDE = re.compile(r"\]\(([\w-]+)\.md\)")
"""A link from one document to another, as it stands in a repository."""


@dataclass(frozen=True)
class Document:
    """One of them."""

    name: str
    title: str
    text: str

    @functools.cached_property
    def _html(self) -> str:
        text = _BESIDE.sub(r"](/docs/\1)", self.text)
        return html_of(text, first=1)

    @property
    def html(self) -> Markup:
        links = under("/docs/")
        return Markup(self._html.replace('href="/docs/', f'href="{links}'))  # noqa: S704 - the renderer escapes text


@router.get("/docs")
def documents(person: Somebody) -> HTMLResponse:
    """All of them."""
    return page("documents.html", person=person, documents=_documents().values())


@router.get("/docs/{name}")
def document(person: Somebody, name: str) -> HTMLResponse:
    """One of them."""
    found = _documents().get(name)
    if found is None:
        raise Refused(404, f"there is no document {name[:60]!r}; there are: {', '.join(_documents())}")
    return page("document.html", person=person, document=found)


@functools.cache
def _documents() -> dict[str, Document]:
    found = sorted(files("opmon").joinpath("docs").iterdir(), key=lambda each: each.name)
    texts = {each.name.removesuffix(".md"): each.read_text("utf-8") for each in found if each.name.endswith(".md")}
    return {name: Document(name, _title(text), text) for name, text in texts.items()}


def _title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ").replace("`", "")
