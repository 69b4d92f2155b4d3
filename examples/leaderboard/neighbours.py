"""Neighbours on a board of claims: how many are certified to be better than the next, and how often that is wrong.

Honest boards: teams whose submissions are refinements of one another, so that two of them differ on few rows; every
claim is off by chance. Attacked boards: labels that are coin flips, of which nobody knows anything, so that every pair
that is certified is wrong; attackers boost what stood, flip pairs of rows, send copies and opposites under many names,
and claim what certifies most if it stands. Everything runs through the competition itself, without a server.

    python examples/leaderboard/neighbours.py            # some minutes
    python examples/leaderboard/neighbours.py --quick
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reusable_holdout_leaderboard import Competition, Rules

if TYPE_CHECKING:
    from collections.abc import Callable

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


def boost(board: Board, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Guess at random with claims that tell, and vote by what stood high; send the vote beside its opposite."""
    votes = np.zeros(rows)
    for number in range(questions):
        guess = rng.integers(0, 2, rows)
        told = board.send(Sent(f"b{number}", guess, 0.5 + 1.5 / np.sqrt(rows)))
        votes += (2 * guess - 1) * (1.0 if told.startswith(("measured", "agreed")) else -1.0)
    best = (votes > 0).astype(int)
    for number, claim in enumerate(np.linspace(0.5, 0.5 + 8.0 / np.sqrt(rows), 9)):
        board.send(Sent(f"vote {number}", np.where(np.arange(rows) == number, 1 - best, best), claim))
        board.send(
            Sent(f"against {number}", np.where(np.arange(rows) == number, best, 1 - best), 1.0 - claim)
        )


def flip_pairs(board: Board, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Keep what stood, flip blocks of it, and claim of both what sets them apart."""
    kept, size = rng.integers(0, 2, rows), max(1, rows // 10)
    for number in range(questions):
        other = kept.copy()
        block = rng.choice(rows, size, replace=False)
        other[block] = 1 - other[block]
        claim = 0.5 + rng.choice([1.0, 2.0, 3.0]) / np.sqrt(rows)
        told = board.send(Sent(f"f{number}", other, claim))
        if told.startswith(("agreed", "measured")):
            kept = other


def sock_puppets(board: Board, rng: np.random.Generator, rows: int, questions: int) -> None:
    """Many names send copies with few rows changed, with high and with low claims."""
    shared = rng.integers(0, 2, rows)
    for number in range(questions):
        copy = shared.copy()
        changed = rng.choice(rows, 1 + number % 40, replace=False)
        copy[changed] = rng.integers(0, 2, len(changed))
        high = number % 2 == 0
        board.send(Sent(f"s{number}", copy, 0.5 + (1.0 if high else -1.0) * 3.0 / np.sqrt(rows)))
        if number % 7 == 0:
            board.send(Sent(f"o{number}", 1 - copy, 0.5 + (-1.0 if high else 1.0) * 3.0 / np.sqrt(rows)))


ATTACKS = {"boosting": boost, "pair flips": flip_pairs, "sock puppets": sock_puppets}


def attacked(attack: str, rows: int, questions: int, seed: int) -> Counted:
    """A board of coin flips: whatever is certified is wrong, looked at after every tenth submission and at the end."""
    rng = np.random.default_rng([seed, len(attack)])
    labels = rng.integers(0, 2, rows)
    with tempfile.TemporaryDirectory() as folder:
        error = 0.25 / np.sqrt(rows)  # the narrower claims are, the more a pair can be told apart
        board = Board(
            Path(folder), labels, prior_error=error, queries=4 * questions, submissions_per_team=questions
        )
        ATTACKS[attack](board, rng, rows, questions)
        return counted(attack, board, rows, lambda _: 0.5)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small boards, one of each")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows, teams, runs = ([20_000], 30, 1) if options.quick else ([20_000, 100_000], TEAMS, 8)
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
        "\n| attack on coin flips | boards | neighbours | certified, each of them wrong | boards with one |"
    )
    print("|---|---|---|---|---|")
    for attack in ATTACKS:
        found = [attacked(attack, 2_000, 40 if options.quick else 150, seed) for seed in range(runs)]
        wrong = [one.certified for one in found]
        print(
            f"| {attack} | {runs} | {sum(one.neighbours for one in found)} | {sum(wrong)} | "
            f"{sum(one > 0 for one in wrong)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
