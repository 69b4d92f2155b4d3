"""A session of a terminal as a picture: what was typed and what was printed, as SVG."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

__all__ = ["Said", "drawn"]

_LETTER, _LINE, _EDGE = 8.0, 19, 18  # of a letter's width, a line's height, and the margin, in pixels
_PAPER, _INK, _PROMPTS = "#16202a", "#e4eaf0", ("#7fd1c7", "#f2c078", "#c5b3f0")


class Said(NamedTuple):
    """A line of a session: who typed it (empty if it was printed), and the line."""

    who: str
    line: str


def drawn(session: list[Said], *, title: str) -> str:
    """The session, as SVG; every user's prompt has a colour of its own."""
    users = list(dict.fromkeys(said.who for said in session if said.who))
    colours = dict(zip(users, _PROMPTS, strict=False))
    width = round(2 * _EDGE + _LETTER * max(len(said.who) + 2 + len(said.line) for said in session))
    height = 2 * _EDGE + _LINE * len(session)
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    font = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} fill="{_INK}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="10" fill="{_PAPER}"/>',
    ]
    for number, said in enumerate(session):
        y = _EDGE + _LINE * (number + 1) - 6
        prompt = f'<tspan fill="{colours[said.who]}">{escape(said.who)}$ </tspan>' if said.who else ""
        parts.append(f'<text x="{_EDGE}" y="{y}" xml:space="preserve">{prompt}{escape(said.line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
