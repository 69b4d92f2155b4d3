"""Neighbours on a board of claims: how many are certified to be better than the next, and how often that is wrong.

Honest boards: teams whose submissions are refinements of one another, so that two of them differ on few rows; every
claim is off by chance. Attacked boards: labels that are coin flips, of which nobody knows anything, so that every pair
that is certified is wrong; attackers boost what stood, flip pairs of rows, send copies and opposites under many names,
and claim what certifies most if it stands. Honest boards run through the competition itself, without a server; of
attacked ones all pairs of questions are looked at, not the neighbours of the end alone.

    python examples/leaderboard/neighbours.py            # some minutes
    python examples/leaderboard/neighbours.py --quick
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reusable_holdout_leaderboard import Competition, Rules

from reusable_holdout import Plan, ReusableHoldout, Rows
from reusable_holdout.certainty import lead_nats

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

TEAMS, FIRST, LAST = 100, 0.70, 0.90
OFF = 0.003  # how far honest claims are off by chance


class Counted(NamedTuple):
    """Neighbours of one board, of all that it has."""

    name: str
    rows: int
    neighbours: int
    by_intervals: int
    certified: int
    wrong: int
    median_places: float
    median_places_before: float


class Sent(NamedTuple):
    """Predictions, what is claimed of them, and by whom."""

    team: str
    predictions: np.ndarray
    claimed: float


class Board:
    """A competition in a folder of its own.

    Parameters
    ----------
    folder : Path
    labels : numpy.ndarray
    settings : object
        Rules.
    """

    def __init__(self, folder: Path, labels: np.ndarray, **settings: object) -> None:
        path = folder / "labels.parquet"
        pq.write_table(pa.table({"label": labels}), path)
        given = {"slug": "board", "title": "Board", "id_column": None, "vacuous": True, **settings}
        self.competition = Competition.create(folder, Rules(**given), path)
        self._teams: dict[str, int] = {}
        self._moment = 0.0

    def send(self, one: Sent) -> str:
        """What a submission is told."""
        if one.team not in self._teams:
            team = self.competition.authenticate(self.competition.add_team(one.team))
            self._teams[one.team] = team.id
        claimed = float(np.clip(one.claimed, 0.0, 1.0))
        said = self.competition.submit_predictions(self._teams[one.team], one.predictions, claimed=claimed)
        return str(said.told)


# ---- honest teams


def refinements(rng: np.random.Generator, labels: np.ndarray, teams: int, broken: float) -> list[np.ndarray]:
    """Predictions of growing accuracy: each repairs rows of the one before, and breaks a few."""
    rows = len(labels)
    right = rng.random(rows) < FIRST
    gain = (LAST - FIRST) / (teams - 1)
    found = []
    for _ in range(teams):
        found.append(np.where(right, labels, 1 - labels))
        share = right.mean()
        mends = rng.random(rows) < (gain * (1.0 + broken)) / (1.0 - share)
        breaks = rng.random(rows) < gain * broken / share
        right = np.where(right, ~breaks, mends)
    return found


def honest(rows: int, teams: int, broken: float, order: str, seed: int) -> Counted:
    """A board of refinements, in the order of their scores or by chance."""
    rng = np.random.default_rng([seed, rows, teams])
    labels = rng.integers(0, 2, rows)
    truths = np.linspace(FIRST, LAST, teams)
    sent = refinements(rng, labels, teams, broken)
    turns = np.arange(teams) if order == "climbing" else rng.permutation(teams)
    with tempfile.TemporaryDirectory() as folder:
        board = Board(Path(folder), labels, prior_error=OFF, estimate=0.8, queries=1_000)
        for team in turns:
            board.send(Sent(f"{team}", sent[team], truths[team] + rng.normal(0.0, OFF)))
        name = f"{teams} refinements, {order}, {broken:g} broken for each repaired"
        return counted(name, board, rows, lambda one: truths[int(one)])


def counted(name: str, board: Board, rows: int, truth: Callable[[str], float]) -> Counted:
    """Neighbours of a board as it is now."""
    standings = [one for one in board.competition.board() if one.certified]
    pairs = list(pairwise(standings))
    apart = [one.low > other.high or other.low > one.high for one, other in pairs]
    intervals = [(one.low, one.high) for one in standings]
    before = [sum(low <= end and start <= high for low, high in intervals) for start, end in intervals]
    return Counted(
        name,
        rows,
        len(pairs),
        sum(apart),
        sum(one.better_than_next for one, _ in pairs),
        sum(one.better_than_next and truth(one.team) <= truth(other.team) for one, other in pairs),
        float(np.median([one.rank_last - one.rank + 1 for one in standings])),
        float(np.median(before)),
    )


# ---- attackers: of coin flips all true scores are a half


def boost(board: Guarded, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Guess at random and claim so little that half of the guesses are better than may be; then vote by what was told.

    The vote and its opposite are claimed to be worth what such a vote is worth, and less and more than that.
    """
    votes = np.zeros(rows)
    for number in range(questions):
        guess = rng.integers(0, 2, rows)
        told = board.send(Sent(f"b{number}", guess, 0.5 - board.threshold))
        votes += (2 * guess - 1) * (1.0 if told.startswith("cell") else -1.0)
    best, worth = (votes > 0).astype(int), 0.32 * np.sqrt(questions / rows)
    for number, part in enumerate((1.0, 0.8, 1.2, 0.6, 1.5)):
        edited = np.where(np.arange(rows) == number, 1 - best, best)  # another question
        board.send(Sent(f"vote {number}", edited, 0.5 + part * worth))
        board.send(Sent(f"against {number}", 1 - edited, 0.5 - part * worth))


def flip_pairs(board: Guarded, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Flip a block of what is kept, keep it if it is told to be better, and ask about the whole and its opposite.

    Whether it is better is what the claim's threshold says: it lies where the last one to be kept was.
    """
    kept, size, at = rng.integers(0, 2, rows), max(1, rows // 12), 0.5
    for number in range(questions):
        other = kept.copy()
        block = rng.choice(rows, size, replace=False)
        other[block] = 1 - other[block]
        if board.send(Sent(f"f{number}", other, at - board.threshold)).startswith("cell"):
            kept, at = other, at + 0.4 / np.sqrt(rows) / np.sqrt(1.0 + number)
    board.send(Sent("kept", kept, at))
    board.send(Sent("opposite", 1 - kept, 1.0 - at))


def sock_puppets(board: Guarded, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Many names send copies with a part changed, of which one is claimed to be high and its twin to be low."""
    shared = rng.integers(0, 2, rows)
    for number in range(questions // 2):
        copy, twin = shared.copy(), shared.copy()
        changed = rng.choice(rows, rows // (2 + number % 20), replace=False)
        copy[changed] = rng.integers(0, 2, len(changed))
        twin[changed] = 1 - copy[changed]
        board.send(Sent(f"h{number}", copy, 0.5 + board.threshold))
        board.send(Sent(f"l{number}", twin, 0.5 - board.threshold))


ATTACKS = {"boosting": boost, "pair flips": flip_pairs, "sock puppets": sock_puppets}


class Attacked(NamedTuple):
    """All pairs of questions of one attacked board: whatever is certified of coin flips is wrong."""

    pairs: int
    certified: int
    each_by_itself: int


class Guarded:
    """What the board rests on, asked in its place: all pairs can be looked at, not the neighbours of the end alone.

    Parameters
    ----------
    labels : numpy.ndarray
    queries : int
    """

    def __init__(self, labels: np.ndarray, queries: int) -> None:
        error = 0.25 / np.sqrt(len(labels))  # the closer claims must be, the more they tell of a pair
        plan = Plan(board="claims", queries=queries, prior_error=error, confidence=0.9525)
        rows = Rows(None, labels, classes=[0, 1])
        self.guard = ReusableHoldout(rows, plan=plan, seed=0, allow={"vacuous"})
        self.threshold = self.guard.plan.threshold
        self._sent: dict[int, np.ndarray] = {}

    def send(self, one: Sent) -> str:
        """What a claim is told."""
        claimed = float(np.clip(one.claimed, 0.0, 1.0))
        answer = self.guard.evaluate(one.predictions, prior=claimed, series=one.team)
        self._sent[answer.query] = one.predictions
        return answer.told

    def counted(self) -> Attacked:
        """Pairs that are certified, and those that would be if each were looked at by itself with 95%."""
        pairs = self.guard.pairs(0.0025)
        told = [one for one in pairs.reached(list(self._sent)) if one is not None]
        certified = alone = both = 0
        for one, other in permutations(told, 2):
            both += 1
            if pairs.apart(one, other):
                differing = int(np.count_nonzero(self._sent[one.query] != self._sent[other.query]))
                lead = (one.low - other.high) * len(self._sent[one.query])
                certified += pairs.leads(one, other, differing)
                alone += bool(lead_nats(lead, differing) >= np.log(2.0 / 0.05))
        return Attacked(both // 2, certified, alone)


def attacked(attack: str, rows: int, questions: int, seed: int) -> Attacked:
    """A board of coin flips, of which all pairs that were ever asked are looked at."""
    rng = np.random.default_rng([seed, len(attack)])
    board = Guarded(rng.integers(0, 2, rows), 4 * questions)
    ATTACKS[attack](board, rng, rows, questions)
    return board.counted()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small boards, one of each")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows, teams, runs = ([20_000], 30, 1) if options.quick else ([20_000, 100_000], TEAMS, 20)
    print(
        "| honest board | labels | neighbours | certified by intervals | certified | wrong | places, by intervals |"
    )
    print("|---|---|---|---|---|---|---|")
    for order in ("climbing", "by chance"):
        for some in (teams, teams // 5):
            for each in rows:
                one = honest(each, some, 0.25, order, 1)
                pairs = f"{one.neighbours} | {one.by_intervals} | {one.certified} | {one.wrong}"
                places = f"{one.median_places:g}, {one.median_places_before:g}"
                print(f"| {one.name} | {one.rows:,} | {pairs} | {places} |", flush=True)
    print(
        "\n| attack on coin flips | boards | pairs | certified, each wrong | boards with one | if each had 95% |"
    )
    print("|---|---|---|---|---|---|")
    for attack in ATTACKS:
        for questions in (20, 60, 150):
            found = [attacked(attack, 2_000, questions, seed) for seed in range(runs)]
            wrong = [one.certified for one in found]
            counts = f"{sum(wrong)} | {sum(one > 0 for one in wrong)} | {sum(one.each_by_itself for one in found):,}"
            pairs = f"{runs} | {sum(one.pairs for one in found):,}"
            print(f"| {attack}, {questions} questions | {pairs} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
