"""HTML for notebooks and reports, with all text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from reusable_holdout.errors import printable

__all__ = ["escape", "facts_table"]


def escape(text: str) -> str:
    """Return a line of text as HTML, without control and invisible characters."""
    return html.escape(printable(text))


def facts_table(caption: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table of named facts.

    >>> print(facts_table("guard", [("metric", "<accuracy>")]))
    <table><caption>guard</caption><tbody>
    <tr><th scope="row" style="text-align:left">metric</th><td style="text-align:left">&lt;accuracy&gt;</td></tr>
    </tbody></table>
    """
    left = 'style="text-align:left"'
    lines = [
        f'<tr><th scope="row" {left}>{escape(name)}</th><td {left}>{escape(value)}</td></tr>'
        for name, value in facts
    ]
    return "\n".join([f"<table><caption>{escape(caption)}</caption><tbody>", *lines, "</tbody></table>"])
