"""Rendering of descriptions in Markdown. HTML in them is shown as text, and only some kinds of links are allowed."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup

__all__ = ["prose_of", "summary_of"]

_SCHEMES = {"http", "https", "mailto"}
_HIGHEST = 3  # level of the largest heading in a description; the page itself has levels 1 and 2
_MOST_SUMMARY = 280


@lru_cache(maxsize=16)
def prose_of(text: str) -> Markup:
    """Return the HTML of a description in Markdown.

    Examples
    --------
    >>> print(prose_of("See [*rules*](https://example.org) <script>"))
    <p>See <a href="https://example.org" rel="nofollow noopener noreferrer"><em>rules</em></a> &lt;script&gt;</p>
    >>> print(prose_of("[x](javascript:alert(1))"))
    <p>[x](javascript:alert(1))</p>
    """
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + _HIGHEST - 1)}"
        for one in token.children or ():
            if one.type == "link_open":
                one.attrSet("rel", "nofollow noopener noreferrer")
    return Markup(parser.renderer.render(tokens, parser.options, {}).strip())  # noqa: S704 - the parser has escaped it


def summary_of(text: str) -> str:
    """Return the first paragraph of a description without Markdown's marks. A long paragraph is shortened."""
    tokens = _parser().parse(text)
    paragraphs = (one for before, one in pairwise(tokens) if before.type == "paragraph_open")
    children = getattr(next(paragraphs, None), "children", None) or []
    words = (" " if one.type in {"softbreak", "hardbreak"} else one.content for one in children)
    first = "".join(words).strip()
    return first if len(first) <= _MOST_SUMMARY else first[:_MOST_SUMMARY].rsplit(" ", 1)[0] + " …"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("image")
    parser.validateLink = _may_link  # type: ignore[method-assign]
    return parser


def _may_link(url: str) -> bool:
    """Return True if a link may lead to a URL. The parser has already decoded the URL's HTML entities."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return False
    if parts.scheme:
        return parts.scheme.lower() in _SCHEMES
    return ":" not in url and not url.startswith(("//", "\\", "%5C"))
