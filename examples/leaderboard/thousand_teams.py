"""A board of claims for a thousand teams: who has a certified score, how wide, and what spoilers cost the others.

Rows are labels of a made-up holdout, and every claim runs through the guard; no server, so that it takes minutes.
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

import numpy as np

from reusable_holdout import ReusableHoldout

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

TEAMS, SUBMISSIONS, ROWS, OFF = 1_000, 10, 100_000, 0.003
TOP = 0.85
NOT_CERTIFIED = "not certified"


class Board(NamedTuple):
    """What came of one board."""

    name: str
    certified: int
    refused: int
    median: float
    widest: float
    missed: int
    lead_off: float
    unjust: int


class Asked(NamedTuple):
    """A submission: its true score, and what its team claims of it."""

    truth: float
    claim: float
    honest: bool


def scores(rng: np.random.Generator, *, piled: bool) -> np.ndarray:
    """True scores of shape (teams, submissions): each team climbs a little, and nobody passes the top."""
    first = TOP - rng.exponential(0.004, TEAMS) if piled else np.minimum(rng.normal(0.75, 0.04, TEAMS), TOP)
    gains = rng.exponential(0.0005 if piled else 0.002, (TEAMS, SUBMISSIONS))
    return np.minimum(first[:, None] + gains.cumsum(axis=1) - 0.01, TOP)


def predictions(rng: np.random.Generator, labels: np.ndarray, truth: float) -> np.ndarray:
    """Predictions whose every row is right with this probability."""
    return np.where(rng.random(len(labels)) < truth, labels, 1 - labels).astype(np.uint8)


def claimed(team: int, number: int, truth: float, lead: float, style: str, rng: np.random.Generator) -> Asked:
    """What a team sends: most are honest, and off by their own validation's chance."""
    honest = Asked(truth, float(np.clip(truth + rng.normal(0.0, OFF), 0.0, 1.0)), True)
    kind, _, count = style.partition(" ")
    if not count or team >= int(count):
        return honest
    if kind == "lie":
        return Asked(truth, min(1.0, truth + 0.1 * (1.0 + rng.random())), False)
    if kind == "late":  # stand once, lie, stand again, lie again
        lies = number in {1, SUBMISSIONS - 1}
        return Asked(truth, min(1.0, truth + 0.02 * (1.0 + 5.0 * rng.random())) if lies else truth, False)
    if (
        kind == "burst"
    ):  # stand once, lie, stand seven times, lie: each lie in another of the cells that can be told
        off = float(rng.choice([-3.0, -1.5, 1.5, 3.0, 6.0, 9.0])) if number in {1, 9} else 0.0
        return Asked(0.6, float(np.clip(0.6 + off * 4.0 * (OFF**2 + 0.25 / ROWS) ** 0.5, 0.0, 1.0)), False)
    near = TOP - 0.002  # claims the lead without end, with scores that are nearly as good
    return Asked(near, min(1.0, max(near, lead + 0.0102)), False)


def in_order(style: str, rng: np.random.Generator) -> np.ndarray:
    """Teams in the order of their submissions: by chance, but for who comes in one early burst."""
    kind, _, count = style.partition(" ")
    if kind != "burst":
        return rng.permutation(np.repeat(np.arange(TEAMS), SUBMISSIONS))
    spoilers = np.tile(np.arange(int(count)), SUBMISSIONS)
    others = rng.permutation(np.repeat(np.arange(int(count), TEAMS), SUBMISSIONS))
    early = len(others) // 20
    return np.concatenate([others[:early], spoilers, others[early:]])


def play(name: str, style: str, *, piled: bool = False, seed: int = 0) -> Board:
    """Ask about every submission of every team, in an order by chance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS).astype(np.uint8)
    truths = scores(rng, piled=piled)
    order = in_order(style, rng)
    sent = np.zeros(TEAMS, dtype=int)
    settings = {"queries": TEAMS * SUBMISSIONS, "policy": "claims", "prior_error": OFF, "seed": seed}
    guard = ReusableHoldout(None, labels, classes=[0, 1], **settings)
    widths, missed, refused, lead = [], 0, 0, 0.0
    standing: dict[int, tuple[float, float, float]] = {}
    leader = None
    for team in order.tolist():
        asked = claimed(team, int(sent[team]), float(truths[team, sent[team]]), lead, style, rng)
        sent[team] += 1
        answer = guard.evaluate_predictions(
            predictions(rng, labels, asked.truth), prior=asked.claim, series=str(team)
        )
        if answer.told == NOT_CERTIFIED:
            refused += asked.honest
            continue
        missed += not answer.low <= asked.truth <= answer.high
        standing[team] = max(standing.get(team, (0.0, 0.0, 0.0)), (answer.low, answer.high, asked.truth))
        if answer.told.startswith("measured") and not answer.charged:
            lead, leader = answer.value, asked.truth
        if asked.honest:
            widths.append(answer.high - answer.low)
    guard.close()
    unjust = _unjust(standing)
    off = float("nan") if leader is None else lead - leader
    return Board(name, len(standing), refused, float(np.median(widths)), max(widths), missed, off, unjust)


def _unjust(standing: dict[int, tuple[float, float, float]]) -> int:
    """Pairs in which a team is above another whose true score is better by more than its interval."""
    lows = np.array([low for low, _, _ in standing.values()])
    highs = np.array([high for _, high, _ in standing.values()])
    truths = np.array([truth for _, _, truth in standing.values()])
    ranks = 1 + (lows[None, :] > highs[:, None]).sum(axis=1)
    worse = truths[None, :] - truths[:, None] > (highs - lows)[:, None]
    return int((worse & (ranks[:, None] < ranks[None, :])).sum())


BOARDS = [
    ("all honest", "honest", False),
    ("20 teams that always lie", "lie 20", False),
    ("100 teams that always lie", "lie 100", False),
    ("20 that stand, lie, stand, lie", "late 20", False),
    ("100 that stand, lie, stand, lie", "late 100", False),
    ("20 that do so in one early burst, every cell", "burst 20", False),
    ("100 that do so in one early burst, every cell", "burst 100", False),
    ("scores that pile up at the top", "honest", True),
    ("20 near-best that always claim the lead", "near 20", True),
    ("100 near-best that always claim the lead", "near 100", True),
]


def main() -> None:
    """Print a row for each board."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="boards of each kind (default 1)")
    given = parser.parse_args()
    print(f"{TEAMS:,} teams x {SUBMISSIONS}, {ROWS:,} labels, honest claims off by {OFF}")
    print(
        "| board | teams certified | honest refused | median width | widest | missed | lead off by | unjust |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, style, piled in BOARDS:
        for seed in range(given.seeds):
            one = play(name, style, piled=piled, seed=seed)
            print(
                f"| {one.name} | {one.certified:,} | {one.refused} | {one.median:.4f} | {one.widest:.4f} | "
                f"{one.missed} | {one.lead_off:+.4f} | {one.unjust} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
