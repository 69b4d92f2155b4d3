"""Table and pictures of what a guard has released, as files for MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.plotting import INK

if TYPE_CHECKING:
    import pandas as pd

    from reusable_holdout import ReusableHoldout

__all__ = ["Files", "write_files"]

_DPI = 100
_MARGINS = {
    "left": 0.08,
    "right": 0.92,
    "bottom": 0.12,
    "top": 0.96,
}  # a layout that adapts itself draws twice


class Files(NamedTuple):
    """What was written.

    Attributes
    ----------
    table : Path
        The history.
    pictures : list of Path
        Answers and intervals, then the budget; none where matplotlib is missing.
    """

    table: Path
    pictures: list[Path]

    def for_a_run(self) -> list[Path]:
        """Table and answers: the budget is the holdout's, not the run's."""
        return [self.table, *self.pictures[:1]]


def write_files(guard: ReusableHoldout, folder: str) -> Files:
    """Write the history as a table and, if matplotlib is there, as pictures.

    They are not drawn through pyplot, whose windows belong to the main thread.
    """
    history, table = guard.history(), Path(folder) / "history.csv"
    history.to_csv(table, index=False)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return Files(table, [])
    answers, budget = Path(folder) / "history.png", Path(folder) / "budget.png"
    figure = Figure(figsize=(9, 4.5))
    guard.plot(figure.subplots(gridspec_kw=_MARGINS))
    figure.savefig(answers, dpi=_DPI)
    figure = Figure(figsize=(9, 4.5))
    spent, left = figure.subplots(2, sharex=True, gridspec_kw=_MARGINS)
    _draw_charges(spent, history, guard.plan.charges)
    _draw_burn_down(left, history, guard)
    figure.savefig(budget, dpi=_DPI)
    return Files(table, [answers, budget])


def _draw_charges(ax: Any, history: pd.DataFrame, charges: int) -> None:
    """Charges so far, and the queries that were charged."""
    total = history["charged"].cumsum()
    ax.step(history["query"], total, where="post", color=INK["charge"], lw=1.2)
    paid = history["charged"]
    ax.plot(history["query"][paid], total[paid], "o", ms=5, color=INK["charge"], label="charged")
    ax.axhline(charges, color=INK["budget"], ls="--", lw=1, label=f"budget: {charges}")
    ax.set_ylim(0, max(1, charges) * 1.1)
    ax.set_ylabel("charges")
    ax.legend(loc="upper left", fontsize=8)
    ax.grid(alpha=0.2)


def _draw_burn_down(ax: Any, history: pd.DataFrame, guard: ReusableHoldout) -> None:
    """Share of each budget that is left."""
    plan = guard.plan
    asked = [0, *history["query"]]
    queries = [1 - query / plan.queries for query in asked]
    charges = [1.0, *(history["charges_left"] / max(1, plan.charges))]
    ax.plot(asked, queries, color=INK["answer"], lw=1.2, label="queries left")
    ax.step(asked, charges, where="post", color=INK["charge"], lw=1.2, label="charges left")
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("query")
    ax.set_ylabel("share of the budget")
    ax.legend(loc="lower left", fontsize=8)
    ax.grid(alpha=0.2)
