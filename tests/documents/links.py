"""Headings and links of a page of Markdown, as GitHub has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from site_pages import anchor

__all__ = ["Link", "anchors", "dead", "links"]

_LINK = re.compile(
    r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\((?P<target>[^)\s]+)\)"
)


class Link(NamedTuple):
    """A link or a picture: its words (of a picture what stands for it where it is not seen), and where to."""

    image: bool
    words: str
    target: str


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """What headings are called in links."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", _prose(text), flags=re.MULTILINE):
        name = anchor(heading)
        again = sum(one == name or re.fullmatch(rf"{re.escape(name)}-\d+", one) is not None for one in found)
        found.add(f"{name}-{again}" if again else name)
    return found


def links(text: str) -> list[Link]:
    """All links and pictures outside of code."""
    prose = re.sub(r"`[^`\n]*`", "code", _prose(text))
    return [Link(bool(one["image"]), one["words"], one["target"]) for one in _LINK.finditer(prose)]


def dead(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere: to no file, or to no heading."""
    missing = []
    for link in links(page.read_text()):
        if re.match(r"[a-z]+:", link.target):
            continue
        path, _, heading = link.target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (heading and heading not in anchors(file.read_text())):
            missing.append(link.target)
    return missing
