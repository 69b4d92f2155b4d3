"""Links between files of the repository, as links between pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

__all__ = ["for_the_site", "outside_code"]

_LINK = re.compile(r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"(^```.*?^```$)", flags=re.DOTALL | re.MULTILINE)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with its prose changed, and its blocks of code as they are."""
    parts = _CODE.split(text)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))


def for_the_site(text: str, *, home: str, page: str, places: Mapping[str, str]) -> str:
    """A page's Markdown with its links as the site needs them.

    Parameters
    ----------
    text : str
    home : str
        The file that the text is from, from the repository's root.
    page : str
        Where it is shown, from the site's root.
    places : mapping of str to str
        What of the repository is shown where: files, or ``file#anchor``. What is not among them, such as a script, is
        named and not linked, for the site may be far from the repository.
    """

    def moved(found: re.Match[str]) -> str:
        target, words = found["target"], found["words"]
        if re.match(r"[a-z]+:", target):
            return found[0]
        path, _, part = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(home), path)) if path else home
        to = places.get(f"{file}#{part}") or places.get(file)
        if to is None:
            return words
        relative = posixpath.relpath(to, posixpath.dirname(page) or ".")
        inside = f"#{part}" if part else ""
        return f"{found['image']}[{words}]({inside if to == page and inside else relative + inside})"

    return _LINK.sub(moved, text)
