"""HTML of reports, with all text escaped."""

from __future__ import annotations

import html

from reusable_holdout.errors import printable

__all__ = ["escape"]


def escape(text: str) -> str:
    """Return a line of text as HTML, without control and invisible characters."""
    return html.escape(printable(text))
