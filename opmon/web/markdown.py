"""Markdown as HTML that can do no harm: what the text says of HTML itself is shown as text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_MAY_LEAD = ("http://", "https://", "mailto:", "/docs/")


def html_of(text: str, first: int = 3) -> str:
    """The HTML of Markdown; links lead to http, https, mail and the documents here only, and pictures are left out.

    Its headings begin at the level ``first``: the page around it has those above.

    >>> html_of("**bold** <script>").strip()
    '<p><strong>bold</strong> &lt;script&gt;</p>'
    """
    html: str = _renderer(first).render(text)
    return html


@functools.cache
def _renderer(first: int) -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    class Renderer(RendererHTML):
        """Links open beside the page, which they learn nothing of."""

        def link_open(self, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
            tokens[index].attrSet("rel", "noopener noreferrer nofollow")
            tokens[index].attrSet("target", "_blank")
            return str(self.renderToken(tokens, index, options, env))

        def heading_open(self, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
            tokens[index].tag = f"h{min(6, int(tokens[index].tag[1]) + first - 1)}"
            return str(self.renderToken(tokens, index, options, env))

        heading_close = heading_open

        def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
            """Code may be wider than the page: who has no mouse moves it with the keyboard."""
            return str(super().fence(tokens, index, options, env)).replace("<pre>", '<pre tabindex="0">', 1)

    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}, renderer_cls=Renderer)
    made.enable("table").disable("image")
    made.validateLink = lambda url: url.lower().startswith(_MAY_LEAD)  # type: ignore[method-assign]
    return made
