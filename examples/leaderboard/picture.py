"""Public answer against fresh truth, a point for each team: plain board beside guarded board."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from teams import Outcome, Team

from reusable_holdout.plotting import INK, pyplot

_MARKS = {"honest": "o", "lucky": "D", "attack": "X"}
_INKS = {"honest": INK["answer"], "lucky": INK["prior"], "attack": INK["charge"]}


def draw(boards: dict[str, Sequence[Outcome]], path: Path) -> None:
    """Draw a row of two axes for each board."""
    figure, grid = pyplot().subplots(
        len(boards), 2, figsize=(10.5, 4.8 * len(boards)), layout="constrained", squeeze=False
    )
    for (title, outcomes), row in zip(boards.items(), grid, strict=True):
        reached = [game.truths[game.best] for one in outcomes for game in (one.plain, one.guarded)]
        told = [game.told[game.best] for one in outcomes for game in (one.plain, one.guarded)]
        edges = min(*reached, *told), max(*reached, *told)
        margin = 0.06 * (edges[1] - edges[0])
        limits = (edges[0] - margin, edges[1] + margin)
        for ax, kind in zip(row, ("plain", "guarded"), strict=True):
            _draw_board(ax, outcomes, kind, limits)
            ax.set_title(f"{title}: {kind} board")
        row[0].set_ylabel("best loss on the board")
    grid[0, 0].legend(*_legend(), fontsize=9, loc="upper left")
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def _draw_board(ax: Any, outcomes: Sequence[Outcome], kind: str, limits: tuple[float, float]) -> None:
    low, span = limits[0], limits[1] - limits[0]
    ax.plot(limits, limits, color=INK["budget"], lw=1, zorder=0)
    points = []
    for one in outcomes:
        game = getattr(one, kind)
        best = game.best
        truth, value = float(game.truths[best]), float(game.told[best])
        if np.isfinite(game.lows[best]):
            ax.vlines(truth, game.lows[best], game.highs[best], color=INK["interval"], lw=4, alpha=0.7)
        ax.plot(truth, value, _MARKS[one.team.kind], color=_INKS[one.team.kind], ms=8, mec="white", zorder=3)
        points.append((value, truth, one.team))
    crowd = [point for point in sorted(points, key=lambda point: point[0]) if _in_crowd(point, limits)]
    for place, (value, truth, team) in enumerate(crowd):  # in a column, in the order of the board
        spot = (low + 0.33 * span, low + (0.03 + 0.045 * place) * span)
        line = {"arrowstyle": "-", "color": INK["budget"], "lw": 0.5}
        ax.annotate(
            team.name, (truth, value), spot, arrowprops=line, va="center", fontsize=8, color=_INKS[team.kind]
        )
    lowest = math.inf
    for value, truth, team in sorted(set(points) - set(crowd), key=lambda point: -point[0]):
        lowest = min(value, lowest - 0.04 * span)
        style = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 8}
        ax.annotate(team.name, (truth, lowest), (-9, 3), color=_INKS[team.kind], **style)
    ax.set(xlim=limits, ylim=limits, xlabel="loss on fresh rows")
    ax.grid(alpha=0.2)


def _in_crowd(point: tuple[float, float, Team], limits: tuple[float, float]) -> bool:
    value, _, team = point
    return team.kind == "honest" and value < limits[0] + 0.45 * (limits[1] - limits[0])


def _legend() -> tuple[list[Any], list[str]]:
    lines = pyplot().matplotlib.lines
    marks = [
        lines.Line2D([], [], marker=mark, color=_INKS[kind], ls="", mec="white", ms=8)
        for kind, mark in _MARKS.items()
    ]
    marks += [
        lines.Line2D([], [], color=INK["interval"], lw=4, alpha=0.7),
        lines.Line2D([], [], color=INK["budget"], lw=1),
    ]
    return marks, [*_MARKS, "certified interval", "what is told is true"]
