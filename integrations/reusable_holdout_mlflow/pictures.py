"""Table and pictures of a guard's released answers, as files for MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from reusable_holdout import ReusableHoldout
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.plotting import INK
from reusable_holdout_mlflow.guard_calls import released

__all__ = ["GAP_AND_BUDGET", "Files", "write_files"]

GAP_AND_BUDGET = "gap_and_budget.png"
_DPI = 100
_MARGINS = {
    "left": 0.08,
    "right": 0.92,
    "bottom": 0.12,
    "top": 0.96,
}  # fixed, because an automatic layout draws twice


class Files(NamedTuple):
    """Paths of the files that :func:`write_files` has written.

    Attributes
    ----------
    table : Path
        The guard's history as CSV.
    pictures : list of Path
        A picture of the answers and their intervals, then one of gap and budget. The list is empty if matplotlib is
        not installed.
    """

    table: Path
    pictures: list[Path]

    def for_a_run(self) -> list[Path]:
        """Return the table and the picture of the answers.

        The picture of the budget is left out, because the budget belongs to the holdout, not to a run.
        """
        return [self.table, *self.pictures[:1]]


def write_files(guard: ReusableHoldout, folder: str) -> Files:
    """Write the guard's history to a folder, as a table and, if matplotlib is installed, as pictures.

    Pyplot is not used, because its windows belong to the main thread, and this may run in another thread.
    """
    history, table = guard.history(), Path(folder) / "history.csv"
    history.to_csv(table, index=False)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return Files(table, [])
    answers, budget = Path(folder) / "history.png", Path(folder) / GAP_AND_BUDGET
    figure = Figure(figsize=(9, 4.5))
    guard.plot(figure.subplots(gridspec_kw=_MARGINS))
    figure.savefig(answers, dpi=_DPI)
    figure = Figure(figsize=(9, 4.5))
    gap, left = figure.subplots(2, sharex=True, gridspec_kw=_MARGINS)
    _draw_gap(gap, released(guard, first=1), higher_is_better=guard.metric.greater_is_better)
    _draw_budget(left, history, guard)
    figure.savefig(budget, dpi=_DPI)
    return Files(table, [answers, budget])


def _draw_gap(ax: Any, history: pd.DataFrame, *, higher_is_better: bool) -> None:
    """Draw the overfitting gap: by how much each prior was better than the answer; 0 where the holdout agreed."""
    sign = 1 if higher_is_better else -1
    gap, paid = sign * (history["prior"] - history["value"]), history["charged"]
    ax.axhline(0.0, color=INK["budget"], lw=1)
    ax.step(history["query"], gap, where="post", color=INK["answer"], lw=1.2)
    ax.plot(history["query"][paid], gap[paid], "o", ms=5, color=INK["charge"], label="charged")
    ax.set_ylabel("overfitting gap")
    ax.legend(loc="upper left", fontsize=8)
    ax.grid(alpha=0.2)


def _draw_budget(ax: Any, history: pd.DataFrame, guard: ReusableHoldout) -> None:
    """Draw the share of the charges and of the queries that was left after each query."""
    plan = guard.plan
    left = int(history["charges_left"].iloc[-1]) if len(history) else plan.charges
    asked = [0, *history["query"]]
    queries = [1.0, *(1 - history["asked"] / plan.queries)]
    charges = [1.0, *(history["charges_left"] / max(1, plan.charges))]
    ax.step(
        asked,
        charges,
        where="post",
        color=INK["charge"],
        lw=1.2,
        label=f"charges: {left:,} of {plan.charges:,} left",
    )
    ax.plot(asked, queries, color=INK["answer"], lw=1.2, label="queries")
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("query")
    ax.set_ylabel("share left")
    ax.legend(loc="lower left", fontsize=8)
    ax.grid(alpha=0.2)
