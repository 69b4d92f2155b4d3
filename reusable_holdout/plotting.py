"""Pictures of released answers.

They show the history only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError, of_extra

__all__ = ["INK", "plot_history", "pyplot", "save_picture"]

INK = {
    "answer": "#1f4e79",
    "interval": "#9fbfdd",
    "prior": "#b8860b",
    "charge": "#c0392b",
    "budget": "#7f8c8d",
    "told": "#6c3483",
}
_MOST_BARS = 400  # beyond, intervals are drawn as a band


def plot_history(history: pd.DataFrame, *, charges: int, metric: str, ax: Any = None) -> Any:
    """Draw priors against answers over the queries, intervals, charges, and the budget left.

    Parameters
    ----------
    history : pandas.DataFrame
        The result of :meth:`ReusableHoldout.history`.
    charges : int
        The whole budget.
    metric : str
        Name of the vertical axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if ax is None:
        ax = pyplot().subplots(figsize=(9, 4.5), layout="constrained")[1]
    history = history[~history["paired"]]  # differences have another scale
    query, charged = history["query"], history["charged"].astype(bool)
    told = history["way"].isin(["reveal", "choose", "final"])
    intervals = {"color": INK["interval"], "label": "certified interval"}
    if len(history) <= _MOST_BARS:
        ax.vlines(query, history["low"], history["high"], lw=2, **intervals)
    else:
        ax.fill_between(query, history["low"], history["high"], alpha=0.5, lw=0, **intervals)
    prior, value = history["prior"], history["value"]
    ax.plot(query[~told], prior[~told], ".", ms=4, color=INK["prior"], label="prior (training estimate)")
    ax.plot(query, value, ".", ms=4, color=INK["answer"], label="answer")
    ax.plot(query[charged], value[charged], "o", mfc="none", ms=9, color=INK["charge"], label="charged")
    if told.any():
        ax.plot(query[told], value[told], "D", ms=6, color=INK["told"], label="reveal, choice, final")
    ax.set(xlabel="query", ylabel=metric)
    ax.grid(alpha=0.2)
    _plot_budget(ax, history, charges)
    ax.legend(loc="best", fontsize=8, framealpha=0.9)
    return ax


def _plot_budget(ax: Any, history: pd.DataFrame, charges: int) -> None:
    budget = ax.twinx()
    left = [charges, *history["charges_left"].tolist()]
    start = int(history["query"].iloc[0]) - 1 if len(history) else 0
    queries = [start, *history["query"].tolist()]  # comparisons are left out
    budget.step(queries, left, where="post", color=INK["budget"], lw=1, alpha=0.8)
    budget.set_ylim(0, max(1, charges) * 1.05)
    budget.yaxis.get_major_locator().set_params(integer=True)
    budget.set_ylabel("charges left", color=INK["budget"])
    budget.tick_params(axis="y", colors=INK["budget"])
    if len(history) and history["charges_left"].iloc[-1] == 0:
        ax.axvline(history["query"].iloc[-1], color=INK["charge"], lw=1, ls="--", label="halted")


def save_picture(ax: Any, path: Path) -> None:
    """Write the figure of some axes as a picture and close it.

    Raises
    ------
    InputError
        If the folder does not exist or the format is unknown.
    """
    try:
        ax.figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError(
            f"a picture must be writable at {path}; it is not ({error}); name another file"
        ) from None
    finally:
        pyplot().close(ax.figure)


def pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    with of_extra("plot", "a picture"):
        import matplotlib.pyplot as plt  # noqa: PLC0415 - optional, and slow to import
    return plt
