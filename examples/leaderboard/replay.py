"""A season of a competition, replayed: ten teams on a served, guarded leaderboard, and on one that tells exact scores.

UCI Adult: who earns more than 50,000 dollars? Six teams build models and claim their cross-validated loss. One submits
hundreds of random trees that are all as good, and one of them is lucky. Three attack: by boosting (Blum and Hardt
2015), by pair flips (the same), and on a board for probabilities by the log-loss oracle (Whitehill 2017). The guarded
boards are those of the real server, two worker processes on one ledger, asked over HTTP by all teams at the same time;
the attacks come last.

    python examples/leaderboard/replay.py            # 10,000 labels, 3,200 submissions; a minute or two
    python examples/leaderboard/replay.py --quick    # smaller

A team stands with its best loss. It is compared with the loss of the same submission on fresh rows that nobody asked
about; predictions that no model made know nothing of fresh rows, and have the loss that follows from the base rate. The
exit status is 1 if a guarded board is fooled, or the plain one withstands.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from reusable_holdout_leaderboard import Competition, RemoteHoldout, Rules

sys.path.append(str(Path(__file__).parents[1]))
from attacks import PlainHoldout
from incomes import FULL, QUICK, Rows, Sizes, incomes
from picture import draw
from served import read, served
from teams import Game, Outcome, Team, chance_teams, class_teams

CLIP = 0.05  # of the log loss: it bounds what one row can do
CLASSES, CHANCES = "zero-one loss", "log loss"


class Ranking(NamedTuple):
    """How well a board orders submissions that differ by more than half a certified interval on fresh rows."""

    pairs: int
    tau: float


def rules_of(sizes: Sizes) -> dict[str, Rules]:
    """Return the rules of the two boards."""
    asked = {
        CLASSES: 6 * sizes.models + sizes.lucky + sizes.votes + sizes.flips + 2,
        CHANCES: 10 + sizes.chances // 8,
    }
    common = {"prediction_columns": ("prediction",), "vacuous": True}
    return {
        CLASSES: Rules(
            slug="adult",
            title="Adult income",
            metric="zero_one_loss",
            queries=asked[CLASSES],
            submissions_per_team=asked[CLASSES],
            estimate=0.15,
            **common,
        ),
        CHANCES: Rules(
            slug="adult-chances",
            title="Adult income, probabilities",
            metric="log_loss",
            metric_parameters={"clip": CLIP},
            queries=asked[CHANCES],
            submissions_per_team=asked[CHANCES],
            **common,
        ),
    }


def make(folder: Path, rules: Rules, rows: Rows, teams: Sequence[Team]) -> dict[str, str]:
    """Make a competition; return the tokens of its teams."""
    labels = folder / f"{rules.slug}.csv"
    pd.DataFrame({"id": np.arange(len(rows.y)), "label": rows.y}).to_csv(labels, index=False)
    with Competition.create(folder / "boards", rules, labels) as competition:
        tokens = {team.name: competition.add_team(team.name) for team in teams}
    labels.unlink()
    return tokens


def play(url: str, tokens: dict[str, str], teams: Sequence[Team]) -> list[Game]:
    """All teams at the same time, each with a connection of its own: first who is honest or lucky, then the attacks."""

    def one(team: Team) -> Game:
        with RemoteHoldout(url, tokens[team.name]) as board:
            return team.play(board)

    with ThreadPoolExecutor(len(teams)) as pool:
        waves = [[team for team in teams if (team.kind == "attack") == late] for late in (False, True)]
        games = {
            team.name: game for wave in waves for team, game in zip(wave, pool.map(one, wave), strict=True)
        }
    return [games[team.name] for team in teams]


def season(sizes: Sizes, folder: Path, *, workers: int) -> tuple[dict[str, list[Outcome]], dict[str, object]]:
    """Play both boards, plain and served; also return what the server says of itself at the end."""
    data, rules = incomes(sizes), rules_of(sizes)
    metrics = {title: one.made_metric() for title, one in rules.items()}
    rows = {CLASSES: data.classes, CHANCES: data.chances}
    teams = {
        CLASSES: class_teams(data, sizes, metrics[CLASSES]),
        CHANCES: chance_teams(data, sizes, metrics[CHANCES]),
    }
    tokens = {title: make(folder, rules[title], rows[title], teams[title]) for title in rules}
    outcomes, status = {}, {}
    with served(folder / "boards", workers=workers) as server:
        for title, one in rules.items():
            url = f"{server.url}/c/{one.slug}"
            plain = [team.play(PlainHoldout(rows[title].y, metrics[title])) for team in teams[title]]
            guarded = play(url, tokens[title], teams[title])
            outcomes[title] = [Outcome(*three) for three in zip(teams[title], plain, guarded, strict=True)]
            check_board(read(url, "board"), outcomes[title])
            status[title] = read(url, "status")
    return outcomes, status


def check_board(board: object, outcomes: Sequence[Outcome]) -> None:
    """Check that the public board shows the answer that each team's best submission got."""
    assert isinstance(board, list)
    shown = {row["team"]: (row["value"], row["low"], row["high"]) for row in board}
    for one in outcomes:
        game = one.guarded
        told = {tuple(three) for three in zip(game.told, game.lows, game.highs, strict=True)}
        assert shown[one.team.name] in told, one.team.name


# ---- what came of it


def table(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Best loss of each team on both boards, beside fresh rows; the best guarded one first."""
    rows = []
    for one in outcomes:
        plain, guarded = one.plain, one.guarded
        best, worst = guarded.best, plain.best
        rows.append(
            {
                "team": one.team.name,
                "asked": len(guarded.told),
                "charges": guarded.charges,
                "guarded": guarded.told[best],
                "low": guarded.lows[best],
                "high": guarded.highs[best],
                "fresh": guarded.truths[best],
                "plain": plain.told[worst],
                "plain_fresh": plain.truths[worst],
                "inflated": plain.truths[worst] - plain.told[worst],
            }
        )
    return pd.DataFrame(rows).sort_values("guarded", kind="stable")


def ranking(games: Sequence[Game], *, apart: float) -> Ranking:
    """Kendall's tau over pairs of submissions whose loss on fresh rows differs by more than that."""
    values = np.concatenate([game.told for game in games])
    truths = np.concatenate([game.truths for game in games])
    first, second = np.triu_indices(len(values), 1)
    far = np.abs(truths[first] - truths[second]) > apart
    signs = np.sign(values[first] - values[second]) * np.sign(truths[first] - truths[second])
    return Ranking(int(far.sum()), float(signs[far].mean()) if far.any() else math.nan)


def half_interval(outcomes: Sequence[Outcome]) -> float:
    """Half of the widest interval that an honest team was given."""
    return max(
        float((one.guarded.highs - one.guarded.lows).max()) / 2
        for one in outcomes
        if one.team.kind == "honest"
    )


def orders(outcomes: Sequence[Outcome]) -> str:
    """What the boards' orders of honest submissions are worth, as a table."""
    apart = half_interval(outcomes)
    rows = [
        {"board": kind, "apart": far, **ranking(honest(outcomes, kind), apart=far)._asdict()}
        for kind in ("plain", "guarded")
        for far in (apart, 2 * apart)
    ]
    text = pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format)
    return (
        f"\nKendall's tau against fresh rows, of honest pairs half an interval apart, and a whole one\n{text}"
    )


def honest(outcomes: Sequence[Outcome], kind: str) -> list[Game]:
    """Games of the teams that build models."""
    return [getattr(one, kind) for one in outcomes if one.team.kind == "honest"]


def failures(outcomes: dict[str, list[Outcome]]) -> list[str]:
    """Claims that do not hold."""
    wrong = []
    named = {one.team.name: one for one in outcomes[CLASSES]}
    for title, teams in outcomes.items():
        for one in teams:
            game = one.guarded
            missed = int(((game.truths < game.lows) | (game.truths > game.highs)).sum())
            if missed:
                wrong.append(f"{one.team.name}, {title}: {missed} intervals miss the fresh loss")
    boosting, flips = named["Boosting"], named["Flips"]
    votes = boosting.guarded
    if abs(votes.told[-1] - votes.truths[-1]) > 0.005:
        wrong.append(f"boosting is told {votes.told[-1]:.4f}, and fresh rows say {votes.truths[-1]:.4f}")
    if flips.guarded.told.min() < 0.48:
        wrong.append(f"pair flip gets {flips.guarded.told.min():.4f} on the guarded board")
    order = ranking(honest(outcomes[CLASSES], "guarded"), apart=half_interval(outcomes[CLASSES]))
    if not order.tau >= 0.95:
        wrong.append(f"the honest teams' order has tau {order.tau:.3f}")
    return wrong + [
        f"the plain board withstands {one.team.name}"
        for one in (boosting, flips)
        if one.plain.told.min() > one.plain.truths[one.plain.best] - 0.015
    ]


def main(argv: list[str] | None = None) -> int:
    """Replay the season, print the tables and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and submissions")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--output", type=Path, default=Path("leaderboard.png"))
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.output.parent) as folder:
        outcomes, status = season(QUICK if options.quick else FULL, Path(folder), workers=options.workers)
    for title, teams in outcomes.items():
        print(f"\n{title}\n{table(teams).to_string(index=False, float_format='{:.4f}'.format)}")
        said = status[title]
        assert isinstance(said, dict)
        end = ", halted" if said["halted"] else ""
        print(f"{said['queries_asked']} answers, {said['charges']} charges for each team{end}")
    print(orders(outcomes[CLASSES]))
    draw(outcomes, options.output)
    print(f"picture: {options.output}")
    broken = failures(outcomes)
    for sentence in broken:
        print(f"NOT AS CLAIMED: {sentence}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
