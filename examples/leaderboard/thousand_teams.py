"""A board of claims for a thousand teams: who has a certified score, how wide, and what spoilers cost the others.

Rows are labels of a made-up holdout, and every claim runs through the guard; no server, so that it takes minutes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reusable_holdout import Plan, ReusableHoldout, Rows

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

TEAMS, SUBMISSIONS, ROWS, OFF = 1_000, 10, 100_000, 0.003
TOP = 0.85
CONFIDENCE = (
    0.9525  # of the intervals of a board that promises .95: what is certified of neighbours has the rest
)
NOT_CERTIFIED = "not certified"


class Size(NamedTuple):
    """How large a board is."""

    teams: int = TEAMS
    submissions: int = SUBMISSIONS
    rows: int = ROWS

    @property
    def queries(self) -> int:
        """Submissions of all teams."""
        return self.teams * self.submissions


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


class Sent(NamedTuple):
    """A submission as it is sent."""

    team: int
    asked: Asked
    predictions: np.ndarray


class Told(NamedTuple):
    """What came back."""

    value: float
    low: float
    high: float
    told: str
    charged: bool


FULL = Size()
Asking = Callable[[Sequence[Sent]], Sequence[Told]]


def scores(rng: np.random.Generator, size: Size, *, piled: bool) -> np.ndarray:
    """True scores of shape (teams, submissions): each team climbs a little, and nobody passes the top."""
    teams, count = size.teams, size.submissions
    first = TOP - rng.exponential(0.004, teams) if piled else np.minimum(rng.normal(0.75, 0.04, teams), TOP)
    gains = rng.exponential(0.0005 if piled else 0.002, (teams, count))
    return np.minimum(first[:, None] + gains.cumsum(axis=1) - 0.01, TOP)


def predictions(rng: np.random.Generator, labels: np.ndarray, truth: float) -> np.ndarray:
    """Predictions whose every row is right with this probability."""
    return np.where(rng.random(len(labels)) < truth, labels, 1 - labels).astype(np.uint8)


def claimed(
    team: int, number: int, truth: float, lead: float, style: str, size: Size, rng: np.random.Generator
) -> Asked:
    """What a team sends: most are honest, and off by their own validation's chance."""
    honest = Asked(truth, float(np.clip(truth + rng.normal(0.0, OFF), 0.0, 1.0)), True)
    kind, _, count = style.partition(" ")
    if not count or team >= int(count):
        return honest
    last = size.submissions - 1
    if kind == "lie":
        return Asked(truth, min(1.0, truth + 0.1 * (1.0 + rng.random())), False)
    if kind == "late":  # stand once, lie, stand again, lie again
        lies = number in {1, last}
        return Asked(truth, min(1.0, truth + 0.02 * (1.0 + 5.0 * rng.random())) if lies else truth, False)
    if kind == "burst":  # the same, early, and each lie in another of the cells that can be told
        off = float(rng.choice([-3.0, -1.5, 1.5, 3.0, 6.0, 9.0])) if number in {1, last} else 0.0
        wide = 4.0 * (OFF**2 + 0.25 / size.rows) ** 0.5
        return Asked(0.6, float(np.clip(0.6 + off * wide, 0.0, 1.0)), False)
    near = TOP - 0.002  # claims the lead without end, with scores that are nearly as good
    return Asked(near, min(1.0, max(near, lead + 0.0102)), False)


def in_order(style: str, size: Size, rng: np.random.Generator) -> np.ndarray:
    """Teams in the order of their submissions: by chance, but for who comes in one early burst."""
    kind, _, count = style.partition(" ")
    if kind != "burst":
        return rng.permutation(np.repeat(np.arange(size.teams), size.submissions))
    spoilers = np.tile(np.arange(int(count)), size.submissions)
    others = rng.permutation(np.repeat(np.arange(int(count), size.teams), size.submissions))
    early = len(others) // 20
    return np.concatenate([others[:early], spoilers, others[early:]])


class Season:
    """All submissions of a board, in an order by chance, and what came of them.

    Parameters
    ----------
    style : str
        What spoilers do.
    size : Size
    piled : bool
        Whether scores pile up at the top.
    seed : int
    """

    def __init__(self, style: str, size: Size, *, piled: bool, seed: int) -> None:
        self.style, self.size = style, size
        self._rng = np.random.default_rng(seed)
        self.labels = self._rng.integers(0, 2, size.rows).astype(np.uint8)
        self._truths = scores(self._rng, size, piled=piled)
        self._order = in_order(style, size, self._rng)
        self._next, self._sent = 0, np.zeros(size.teams, dtype=int)
        self._widths: list[float] = []
        self._missed, self._refused = 0, 0
        self._lead = 0.0
        self.standing: dict[int, tuple[float, float, float]] = {}
        self.leader: Asked | None = None

    @property
    def left(self) -> int:
        """Submissions that are still to be sent."""
        return len(self._order) - self._next

    def spoils(self, team: int) -> bool:
        """Whether a team is none of the honest."""
        return team < int(self.style.partition(" ")[2] or 0)

    def play(self, ask: Asking, count: int, *, together: int = 1) -> None:
        """Ask about so many submissions, so many of them at the same time."""
        for _ in range(count // together):
            sent = [self._made() for _ in range(together)]
            for one, told in zip(sent, ask(sent), strict=True):
                self._take(one, told)
        if count % together:
            self.play(ask, count % together)

    def _made(self) -> Sent:
        team = int(self._order[self._next])
        number = int(self._sent[team])
        truth = float(self._truths[team, number])
        asked = claimed(team, number, truth, self._lead, self.style, self.size, self._rng)
        self._next += 1
        self._sent[team] += 1
        return Sent(team, asked, predictions(self._rng, self.labels, asked.truth))

    def _take(self, sent: Sent, answer: Told) -> None:
        team, asked, _ = sent
        if answer.told == NOT_CERTIFIED:
            self._refused += asked.honest
            return
        self._missed += not answer.low <= asked.truth <= answer.high
        now = (answer.low, answer.high, asked.truth)
        self.standing[team] = max(self.standing.get(team, (0.0, 0.0, 0.0)), now)
        if answer.told.startswith("measured") and not answer.charged:
            self._lead, self.leader = answer.value, asked
        if asked.honest:
            self._widths.append(answer.high - answer.low)

    def board(self, name: str) -> Board:
        """What came of it."""
        off = float("nan") if self.leader is None else self._lead - self.leader.truth
        widths = self._widths
        return Board(
            name,
            len(self.standing),
            self._refused,
            float(np.median(widths)),
            max(widths),
            self._missed,
            off,
            _unjust(self.standing),
        )


def directly(season: Season, seed: int) -> tuple[ReusableHoldout, Asking]:
    """A guard of these labels, and how it is asked."""
    plan = Plan(board="claims", queries=season.size.queries, prior_error=OFF, confidence=CONFIDENCE)
    guard = ReusableHoldout(Rows(None, season.labels, classes=[0, 1]), plan=plan, seed=seed)

    def ask(sent: Sequence[Sent]) -> list[Told]:
        answers = [
            guard.evaluate(one.predictions, prior=one.asked.claim, series=str(one.team)) for one in sent
        ]
        return [Told(one.value, one.low, one.high, one.told, one.charged) for one in answers]

    return guard, ask


def play(
    name: str, style: str, *, piled: bool = False, seed: int = 0, size: Size = FULL, together: int = 1
) -> Board:
    """Ask a guard about every submission of every team."""
    season = Season(style, size, piled=piled, seed=seed)
    guard, ask = directly(season, seed)
    season.play(ask, season.left, together=together)
    guard.close()
    return season.board(name)


def _unjust(standing: dict[int, tuple[float, float, float]]) -> int:
    """Pairs in which a team is above another whose true score is better by more than its interval."""
    lows = np.array([low for low, _, _ in standing.values()])
    highs = np.array([high for _, high, _ in standing.values()])
    truths = np.array([truth for _, _, truth in standing.values()])
    ranks = 1 + (lows[None, :] > highs[:, None]).sum(axis=1)
    worse = truths[None, :] - truths[:, None] > (highs - lows)[:, None]
    return int((worse & (ranks[:, None] < ranks[None, :])).sum())


HEAD = "| board | teams certified | honest refused | median width | widest | missed | lead off by | unjust |"
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
    print(HEAD)
    print("|---|---|---|---|---|---|---|---|")
    for name, style, piled in BOARDS:
        for seed in range(given.seeds):
            one = play(name, style, piled=piled, seed=seed)
            print(row_of(one), flush=True)


def row_of(one: Board) -> str:
    """A board as a row of a table."""
    return (
        f"| {one.name} | {one.certified:,} | {one.refused} | {one.median:.4f} | {one.widest:.4f} | "
        f"{one.missed} | {one.lead_off:+.4f} | {one.unjust} |"
    )


if __name__ == "__main__":
    main()
