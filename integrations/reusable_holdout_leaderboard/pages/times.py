"""Dates and times on pages: in UTC as they are sent, in the visitor's zone where scripts run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

__all__ = ["moment", "moment_of_form", "shown_in_form"]


def moment(at: datetime) -> Markup:
    """Element that a script may say in another zone.

    Examples
    --------
    >>> print(moment(datetime(2026, 3, 1, 12, tzinfo=UTC)))
    <time datetime="2026-03-01T12:00:00+00:00">2026-03-01 12:00 UTC</time>
    """
    there = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(there.isoformat(), f"{there:%Y-%m-%d %H:%M}")


def shown_in_form(at: datetime | None) -> str:
    """Value of a form's field, in UTC."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}"


def moment_of_form(text: str) -> Any:
    """What a form's field says, in UTC; None if it is empty, and the text itself if it is no date."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return text
