"""The demo's picture: the scores that each search was told, beside the true scores."""

from __future__ import annotations

from pathlib import Path

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.demo.search import Step
from reusable_holdout.plotting import INK, plot_history, pyplot, save_picture

_TRUTH = "#2e8b57"


def draw(plain: list[Step], guarded: list[Step], history: pd.DataFrame, *, queries: int, path: Path) -> None:
    """Draw both searches side by side on one vertical axis."""
    _, (left, right) = pyplot().subplots(1, 2, figsize=(13, 5), sharey=True, layout="constrained")
    _staircase(left, plain, "reported", color=INK["charge"], label="plain holdout says", last=queries)
    _staircase(left, plain, "fresh", color=_TRUTH, label="fresh rows say", last=queries)
    left.set(title="Plain holdout", xlabel="question", ylabel="accuracy")
    left.grid(alpha=0.2)
    left.legend(loc="upper left")
    plot_history(history, charges=int(history["charges_left"].max()), metric="", ax=right)
    _staircase(
        right, guarded, "fresh", color=_TRUTH, label="fresh rows say", last=int(history["query"].iloc[-1])
    )
    right.set(title="Guarded holdout, with certified intervals", xlabel="question", ylabel="")
    right.legend(loc="lower left", fontsize=8)
    save_picture(left, path)


def _staircase(ax: object, steps: list[Step], what: str, *, color: str, label: str, last: int) -> None:
    """Draw the value of the kept model over the questions."""
    queries = [step.query for step in steps] + [last]
    values = [getattr(step, what) for step in steps]
    ax.step(queries, [*values, values[-1]], where="post", color=color, lw=1.8, label=label)  # type: ignore[attr-defined]
