"""Who calls a scorer: scikit-learn passes a scorer on without saying what its call is for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["is_permuting", "is_score_method"]

_BETWEEN = ("reusable_holdout_sklearn", "reusable_holdout", "sklearn.metrics")  # they hand a call on


def is_score_method() -> bool:
    """Whether it is the `score` of a fitted search or selector: a plain score of rows that its caller names."""
    frame = _caller()
    return frame is not None and frame.f_code.co_name == "score" and _is_of(frame, "sklearn")


def is_permuting() -> bool:
    """Whether it is permutation importance, which scores one model on rows with a column shuffled."""
    frame = _caller()
    return frame is not None and _is_of(frame, "sklearn.inspection")


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as `inspect.currentframe`, which costs more
    while frame is not None and any(_is_of(frame, package) for package in _BETWEEN):
        frame = frame.f_back
    return frame


def _is_of(frame: FrameType, package: str) -> bool:
    name = frame.f_globals.get("__name__") or ""
    return name == package or name.startswith(f"{package}.")
