"""The documents that come with opmon, to read."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup, escape

from opmon.web.markdown import html_of
from opmon.web.pages.asking import Somebody
from opmon.web.refused import Refused
from opmon.web.root import under
from opmon.web.templating import page

router = APIRouter()

_BESIDE = re.compile(r"\]\(([\w-]+)\.md\)")
"""A link from one document to another, as it stands in a repository."""
_PICTURE = re.compile(r"^!\[([^\]\n]+)\]\(([\w-]+)\.svg\)$", re.MULTILINE)
"""A picture that lies beside the documents, on a line of its own."""
_FIGURE = '<p><img class="figure" src="/docs/{name}.svg" alt="{words}"></p>\n'


@dataclass(frozen=True)
class Document:
    """One of them."""

    name: str
    title: str
    text: str

    @functools.cached_property
    def _html(self) -> str:
        pieces = _PICTURE.split(_BESIDE.sub(r"](/docs/\1)", self.text))
        html = html_of(pieces[0], first=1)
        for words, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            html += _FIGURE.format(name=name, words=escape(words)) + html_of(text, first=1)
        return html

    @property
    def html(self) -> Markup:
        links = under("/docs/")
        html = self._html.replace('href="/docs/', f'href="{links}').replace('src="/docs/', f'src="{links}')
        return Markup(html)  # noqa: S704 - the renderer escapes text


@router.get("/docs")
def documents(person: Somebody) -> HTMLResponse:
    """All of them."""
    return page("documents.html", person=person, documents=_documents().values())


@router.get("/docs/{name}.svg")
def picture(person: Somebody, name: str) -> Response:
    """A picture of a document."""
    found = _pictures().get(name)
    if found is None:
        raise Refused(404, f"there is no picture {name[:60]!r}")
    return Response(found, media_type="image/svg+xml", headers={"Cache-Control": "max-age=3600"})


@router.get("/docs/{name}")
def document(person: Somebody, name: str) -> HTMLResponse:
    """One of them."""
    found = _documents().get(name)
    if found is None:
        raise Refused(404, f"there is no document {name[:60]!r}; there are: {', '.join(_documents())}")
    return page("document.html", person=person, document=found)


@functools.cache
def _pictures() -> dict[str, bytes]:
    found = files("opmon").joinpath("docs").iterdir()
    return {each.name.removesuffix(".svg"): each.read_bytes() for each in found if each.name.endswith(".svg")}


@functools.cache
def _documents() -> dict[str, Document]:
    found = sorted(files("opmon").joinpath("docs").iterdir(), key=lambda each: each.name)
    texts = {each.name.removesuffix(".md"): each.read_text("utf-8") for each in found if each.name.endswith(".md")}
    return {name: Document(name, _title(text), text) for name, text in texts.items()}


def _title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ").replace("`", "")
