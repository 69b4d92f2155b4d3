"""Pages of the site that are other files of the repository, whole or in parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Source", "anchor", "sources"]

ROOT = Path(__file__).parents[2]
_WHOLE = {
    "AGENTS.md": "agents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/leaderboard/README.md": "measured/ten-teams.md",
}
_EXAMPLES = "examples/README.md"


class Source(NamedTuple):
    """A page of the site that is made of a file elsewhere in the repository.

    Attributes
    ----------
    home : str
        The file, from the repository's root: what its links are relative to.
    page : str
        The page, from the site's root.
    title : str
    text : str
        Markdown.
    """

    home: str
    page: str
    title: str
    text: str


def anchor(heading: str) -> str:
    """What GitHub and the site call a heading in links."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain.strip().lower()))


def sources() -> list[Source]:
    """All such pages: what was measured, a page for each of its parts, and the repository's own."""
    found = _parts(_EXAMPLES, (ROOT / _EXAMPLES).read_text())
    for home, page in _WHOLE.items():
        text = (ROOT / home).read_text()
        found.append(Source(home, page, _title(text), text))
    return found


def _parts(home: str, text: str) -> list[Source]:
    """A page for each heading of the second level, and one for what stands before the first."""
    first, *rest = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    found = [Source(home, "measured/index.md", _title(first), first)]
    for part in rest:
        title = _title(part)
        raised = re.sub(r"^#(#+ )", r"\1", part, flags=re.MULTILINE)
        found.append(Source(home, f"measured/{anchor(title)}.md", title, raised))
    return found


def _title(text: str) -> str:
    return text.partition("\n")[0].lstrip("# ")
