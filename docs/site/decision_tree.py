"""The picture of docs/ways-to-ask.md: ``python docs/site/decision_tree.py docs/images/choose.svg``."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

_ROWS = [  # what to ask oneself, the way to ask if so, and what it costs
    ("Is the project over?", "final", "once; free; the narrowest interval"),
    ("Are there several models to pick from?", "choose", "its surprise, no charge"),
    ("Does somebody only need yes or no?", "gate", 'a charge for each "better"'),
    ("Is it a new model against an old one?", "compare", "free if you are right, else a charge"),
    ("Do many ask who do not trust each other?", 'Plan(board="claims")', "a team's own charges"),
    ("Have you an estimate of your own?", "evaluate", "free if you are right, else a charge"),
]
_LAST = ("reveal", "its surprise, no charge")
_WIDTH, _LEFT, _RIGHT, _PITCH, _HIGH = 760, 330, 320, 82, 50
_INK, _PAPER, _ASKED, _WAY = "#1f2933", "#ffffff", "#e6f2f1", "#fff4dc"


def _text(x: float, y: float, words: str, *, size: int = 15, bold: bool = False, middle: bool = True) -> str:
    weight, anchor = ("bold" if bold else "normal"), ("middle" if middle else "start")
    font = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x}" y="{y}" {font}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{_HIGH}" rx="8" fill="{fill}" stroke="{_INK}"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x} {y} L{to_x} {to_y}" stroke="{_INK}" stroke-width="1.5" marker-end="url(#tip)"/>'


def _way(y: float, name: str, cost: str) -> list[str]:
    left = _WIDTH - _RIGHT - 20
    centre = left + _RIGHT / 2
    words = [_text(centre, y + 21, name, bold=True), _text(centre, y + 40, cost, size=13)]
    return [_box(left, y, _RIGHT, _WAY), *words]


def drawn() -> str:
    """The tree, as SVG."""
    parts: list[str] = []
    for row, (asked, name, cost) in enumerate(_ROWS):
        y = 20 + row * _PITCH
        parts += [_box(20, y, _LEFT, _ASKED), _text(20 + _LEFT / 2, y + 30, asked)]
        parts += _way(y, name, cost)
        parts += [_arrow(20 + _LEFT, y + _HIGH / 2, _WIDTH - _RIGHT - 22, y + _HIGH / 2)]
        parts += [_text(20 + _LEFT + 35, y + _HIGH / 2 - 6, "yes", size=12)]
        if row < len(_ROWS) - 1:
            parts += [
                _arrow(60, y + _HIGH, 60, y + _PITCH - 2),
                _text(70, y + _HIGH + 21, "no", size=12, middle=False),
            ]
    y = 20 + len(_ROWS) * _PITCH
    corner = f'<path d="M60 {y - _PITCH + _HIGH} V{y + _HIGH / 2} H{_WIDTH - _RIGHT - 22}" fill="none"'
    parts += [f'{corner} stroke="{_INK}" stroke-width="1.5" marker-end="url(#tip)"/>']
    parts += [_text(70, y - _PITCH + _HIGH + 21, "no", size=12, middle=False), *_way(y, *_LAST)]
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{_INK}"/></marker>'
    )
    size = f'viewBox="0 0 {_WIDTH} {y + _HIGH + 20}" width="{_WIDTH}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" fill="{_INK}" role="img">'
    )
    title = "<title>Which way to ask: a list of questions, the first yes decides</title>"
    paper = f'<rect width="100%" height="100%" rx="12" fill="{_PAPER}"/>'
    return "\n".join([head, title, f"<defs>{tip}</defs>", paper, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn())
