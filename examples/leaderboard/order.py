"""The order inside a certified tie: how well it agrees with the truth, and what it is worth to claim too much.

Sixty honest teams send one submission each, the worst team first and the best last, or in a random order. Each claims
its true accuracy, off by chance. The board's order is compared with the order by time that boards had before 0.2.1.
Then ten of the teams claim too much, but so little that their claims still stand. Everything runs through the
competition itself, without a server.

    python examples/leaderboard/order.py            # a minute
    python examples/leaderboard/order.py --quick
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from neighbours import Board, Sent
from reusable_holdout_leaderboard.store.records import Standing
from scipy.stats import spearmanr

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

TEAMS, ROWS, WORST = 60, 20_000, 0.80
OFF = 0.005  # how far honest claims are off by chance
BOASTERS = 10


class Setting(NamedTuple):
    """One kind of board.

    Attributes
    ----------
    spread : float
        Accuracy of the best team less that of the worst.
    best_last : bool
        True if the teams send in the order of their accuracy; else the order is random.
    boast : float
        How much ten of the teams claim too much.
    """

    spread: float
    best_last: bool
    boast: float = 0.0


class Counted(NamedTuple):
    """One board.

    Attributes
    ----------
    by_time, by_value : float
        Rank correlation with the truth, of the order by time and of the board's order.
    tied_for_first, measured : int
        Teams that can be first; teams whose value was measured.
    places_gained : float
        Places by which the ten teams that claim too much stand above their true ones, mean.
    above_lead : int
        Claims that stand above the measured lead they are tied with.
    """

    by_time: float
    by_value: float
    tied_for_first: int
    measured: int
    places_gained: float
    above_lead: int


def agreement(order: Sequence[Standing], truths: dict[str, float]) -> float:
    """Return Spearman's rank correlation of an order of teams, the first one first, with their true accuracies."""
    return float(spearmanr(range(len(order), 0, -1), [truths[one.team] for one in order]).statistic)


def played(setting: Setting, seed: int) -> Counted:
    """Return what one board shows after every team has sent once."""
    rng = np.random.default_rng([seed, TEAMS])
    labels = rng.integers(0, 2, ROWS)
    accuracies = np.linspace(WORST, WORST + setting.spread, TEAMS)
    boasters = set(rng.choice(TEAMS, BOASTERS, replace=False).tolist()) if setting.boast else set()
    turns = np.arange(TEAMS) if setting.best_last else rng.permutation(TEAMS)
    truths = {str(team): float(accuracies[team]) for team in range(TEAMS)}
    with tempfile.TemporaryDirectory() as folder:
        board = Board(Path(folder), labels, prior_error=OFF, estimate=0.8, queries=10_000)
        told = {}
        for team in turns.tolist():
            predicted = np.where(rng.random(ROWS) < accuracies[team], labels, 1 - labels)
            claimed = accuracies[team] + rng.normal(0.0, OFF) + setting.boast * (team in boasters)
            told[str(team)] = board.send(Sent(str(team), predicted, claimed))
        rows = [one for one in board.competition.board() if one.certified]
    by_time = sorted(rows, key=lambda one: (one.rank or 0, not one.leads, one.best_at))
    right = sorted(truths, key=lambda team: -truths[team])
    place = {one.team: number for number, one in enumerate(rows)}
    gained = [right.index(str(team)) - place[str(team)] for team in boasters if str(team) in place]
    lead = next(number for number, one in enumerate(rows) if one.leads)
    return Counted(
        by_time=agreement(by_time, truths),
        by_value=agreement(rows, truths),
        tied_for_first=sum(one.rank == 1 for one in rows),
        measured=sum(told[one.team] != "agreed" for one in rows),
        places_gained=float(np.mean(gained)) if gained else 0.0,
        above_lead=sum(one.rank == rows[lead].rank for one in rows[:lead]),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one board of each kind")
    options = parser.parse_args()
    settings = [
        Setting(0.03, best_last=True),
        Setting(0.03, best_last=False),
        Setting(0.07, best_last=True),
        Setting(0.07, best_last=False),
        Setting(0.07, best_last=True, boast=0.005),
        Setting(0.07, best_last=True, boast=0.010),
    ]
    rows = []
    for setting in settings:
        boards = [played(setting, seed) for seed in range(1 if options.quick else 5)]
        means = {name: np.mean([getattr(one, name) for one in boards]) for name in Counted._fields}
        rows.append(setting._asdict() | means)
    table = pd.DataFrame(rows)
    print(f"{TEAMS} teams, {ROWS:,} labels, claims off by {OFF}, thresholds of {4 * OFF}")
    print(table.round(dict.fromkeys(Counted._fields, 2)).to_string(index=False))
    honest = table[(table["boast"] == 0) & table["best_last"]]
    holds = (honest["by_value"] >= 0.85).all() and (table["above_lead"] == 0).all()
    print("the board's order agrees with the truth by .85 or more" if holds else "it does not hold")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
