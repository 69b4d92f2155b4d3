"""A figure for each data set: score error rate and false negative rate against c."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from frequent_items.claims import BEST
from reusable_holdout.plotting import pyplot

if TYPE_CHECKING:
    import pandas as pd

# Okabe and Ito's colours, told apart by the colour-blind; retraversal is one family, so one hue from light to dark.
_STYLES = {
    "SVT-DPBook": ("#D55E00", "s", "-"),
    "SVT-S-1:1": ("#E69F00", "v", "-"),
    "SVT-S-1:3": ("#CC79A7", "D", "-"),
    "SVT-S-1:c": ("#009E73", "^", "--"),
    "SVT-S-1:c^(2/3)": ("#0072B2", "o", "-"),
    "SVT-ReTr-1D": ("#BDBDBD", "v", "-"),
    "SVT-ReTr-2D": ("#9E9E9E", "^", "-"),
    "SVT-ReTr-3D": ("#7A7A7A", "<", "-"),
    "SVT-ReTr-4D": ("#525252", ">", "-"),
    "SVT-ReTr-5D": ("#252525", "D", "-"),
    "EM": ("#D55E00", "*", "--"),
    "EM, delta 1e-6": ("#0072B2", "o", "-"),
}
_RATES = {"ser": "score error rate", "fnr": "false negative rate"}


def picture(table: pd.DataFrame, *, title: str, runs: int, path: Path) -> None:
    """Draw the means over runs, with bars of one standard deviation up and down.

    Parameters
    ----------
    table : pandas.DataFrame
        Of `summary`, one data set.
    title : str
        Of the figure.
    runs : int
        How many the means are over.
    path : Path
        Where to write it.
    """
    figure, axes = pyplot().subplots(2, 2, figsize=(11, 8), sharex=True, sharey="row", layout="constrained")
    for row, (rate, label) in zip(axes, _RATES.items(), strict=True):
        for ax, setting in zip(row, ("interactive", "non-interactive"), strict=True):
            _panel(ax, table, rate, setting)
        row[0].set_ylabel(label)
    for ax, setting in zip(axes[0], ("interactive", "non-interactive"), strict=True):
        ax.set_title(setting)
        ax.legend(loc="lower right", fontsize=8, framealpha=0.9)
    for ax in axes[1]:
        ax.set_xlabel("c, items to select")
    figure.suptitle(f"{title}; epsilon = 0.1, {runs} runs, mean and standard deviation")
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def _panel(ax: Any, table: pd.DataFrame, rate: str, setting: str) -> None:
    """Draw one rate of one setting; non-interactive methods are shown with the best interactive one."""
    shown = table[(table["setting"] == setting) | (table["method"] == BEST)]
    names = list(shown["method"].unique())
    for place, name in enumerate(names):
        color, marker, line = _STYLES[name]
        mine = shown[shown["method"] == name]
        ax.errorbar(
            mine["c"]
            + 1.2 * (place - (len(names) - 1) / 2),  # side by side, so that bars do not hide each other
            mine[f"{rate}_mean"],
            mine[f"{rate}_std"],
            color=color,
            marker=marker,
            linestyle=line,
            markersize=7 if marker == "*" else 4,
            linewidth=1.4,
            elinewidth=0.7,
            label=name,
        )
    ax.axhline(0, color="black", linewidth=0.6)
    ax.grid(alpha=0.2)
