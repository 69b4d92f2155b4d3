"""What the pages say of a competition: released values only, made once for each revision."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from reusable_holdout import Metric
from reusable_holdout.plan import ALLOWANCE
from reusable_holdout.scales import Bar, Scale, decimals_of, scale_of
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.forms import Expected
from reusable_holdout_leaderboard.pages.changes import RULES, Change, changes_of
from reusable_holdout_leaderboard.pages.charts import BurnDown, burn_down_of
from reusable_holdout_leaderboard.pages.times import moment
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import FinalStanding, RankPoint, Standing, Status, Team
from reusable_holdout_leaderboard.web.requests import whole_of
from reusable_holdout_leaderboard.web.services import Boards

__all__ = [
    "Contents",
    "Halt",
    "MetricText",
    "Part",
    "Row",
    "also_text_of",
    "column_text_of",
    "halt_of",
    "limits_of",
    "metric_text_of",
    "own_limits_of",
    "part_of",
]

_MOST_MOVES = 100
_TEAMS_A_PAGE = 50
_LONGEST_SEARCH = 64
_NAMES = {
    "f1": "F1",
    "mae": "Mean absolute error",
    "mse": "Mean squared error",
    "r2": "R²",
    "matthews_corrcoef": "Matthews correlation",
    "rmse": "Root mean squared error",
    "roc_auc": "ROC AUC",
    "roc_auc_ovr": "ROC AUC, one against the rest",
}
_HALTS = {
    "charges": ("the budget is spent", "No charge is left of {charges:,}."),
    "final": ("the final was given", "Nothing new is answered after it."),
    "queries": ("all questions are asked", "All {queries:,} questions are asked."),
}


class MetricText(NamedTuple):
    """A metric as people read it."""

    name: str
    label: str
    greater_is_better: bool
    decimals: int


class Halt(NamedTuple):
    """Why nothing new is scored."""

    title: str
    text: str


class Row(NamedTuple):
    """A standing, and its drawing on the page that shows it."""

    one: Standing | FinalStanding
    bar: Bar | None


class Part(NamedTuple):
    """Rows of a board that one page shows.

    Attributes
    ----------
    rows : list of Row
    number, pages : int
        Which page it is, from 1, and of how many.
    found : int
        Teams on all of them.
    search : str
        What their names hold.
    """

    rows: list[Row]
    number: int
    pages: int
    found: int
    search: str


class _Board(NamedTuple):
    """What is the same for all readers, of one revision."""

    rows: list[Row]
    scale: Scale | None
    lead: float | None
    moves: list[RankPoint]
    moves_left_out: bool
    final: list[Row]
    final_scale: Scale | None
    also: list[MetricText]
    compared: bool
    change: Change | None
    paid: list[int]


class Contents:
    """What pages say, of all competitions of a process.

    A board is drawn once for each revision, however many people look.

    Parameters
    ----------
    boards : Boards
    """

    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    def of_board(self, competition: Competition, status: Status) -> dict[str, Any]:
        """Board, history and budget for the template."""
        board = self._boards.at_revision(
            competition, ("page", status.final), partial(_board_of, competition, final=status.final)
        )
        return board._asdict() | {"burn": _burn_down(board.paid, status)}


def part_of(rows: list[Row], scale: Scale | None, *, search: str, page: str) -> Part:
    """Page of a board with its bars, of the teams whose names hold some text; the nearest one there is."""
    search = search.strip()[:_LONGEST_SEARCH]
    found = [row for row in rows if search.casefold() in row.one.team.casefold()] if search else rows
    pages = max(1, -(-len(found) // _TEAMS_A_PAGE))
    number = min(whole_of(page) or 1, pages)
    begins = (number - 1) * _TEAMS_A_PAGE
    shown = [_drawn(row, scale) for row in found[begins : begins + _TEAMS_A_PAGE]]
    return Part(shown, number, pages, len(found), search)


def _burn_down(paid: list[int], status: Status) -> BurnDown | None:
    if status.charges_left is None:
        return None
    return burn_down_of(paid, asked=status.answered, left=status.charges_left, charges=status.charges)


def _board_of(competition: Competition, *, final: bool) -> _Board:
    metric = competition.metric
    standings = competition.board()
    rows, scale = [Row(one, None) for one in standings], _scale_of(standings, metric)
    moves = competition.rank_history()
    fresh: list[Row] = []
    final_scale, also = None, []
    if final:  # made before: nothing is scored here
        made = competition.final_standings()
        final_scale = _scale_of(made, metric)
        fresh = [_drawn(Row(one, None), final_scale) for one in made]
        also = [one for one in also_text_of(competition.rules) if all(one.name in row.also for row in made)]
    return _Board(
        rows=rows,
        scale=scale,
        lead=_lead(rows, scale, greater_is_better=metric.greater_is_better),
        moves=moves[: -_MOST_MOVES - 1 : -1],
        moves_left_out=len(moves) > _MOST_MOVES,
        final=fresh,
        final_scale=final_scale,
        also=also,
        compared=competition.compares_neighbours,
        change=next(iter(changes_of(competition.changes())), None),
        paid=competition.paid_queries(),
    )


def _scale_of(standings: list[Standing] | list[FinalStanding], metric: Metric) -> Scale | None:
    ranked = [one for one in standings if one.rank is not None]
    ends = [end for one in ranked for end in (one.low, one.high) if end is not None]
    return scale_of(ends, lower=metric.lower, upper=metric.upper) if ends else None


def _drawn(row: Row, scale: Scale | None) -> Row:
    one = row.one
    if scale is None or one.rank is None or one.low is None or one.high is None or one.value is None:
        return row
    return Row(one, scale.bar(one.low, one.high, one.value))


def _lead(rows: list[Row], scale: Scale | None, *, greater_is_better: bool) -> float | None:
    """Place that a bar must reach to be tied for first: the worse end that no other is wholly better than."""
    if scale is None or len(rows) < 2:
        return None
    if greater_is_better:
        return scale.at(
            max(row.one.low for row in rows if row.one.rank is not None and row.one.low is not None)
        )
    return scale.at(
        min(row.one.high for row in rows if row.one.rank is not None and row.one.high is not None)
    )


# ---- words


def metric_text_of(competition: Competition) -> MetricText:
    """Metric as people read it."""
    return _text_of(competition.rules.metric, competition.metric)


def _text_of(name: str, metric: Metric) -> MetricText:
    label = _NAMES.get(name) or name.replace("_", " ").capitalize()
    return MetricText(name, label, metric.greater_is_better, decimals_of(metric.upper - metric.lower))


def also_text_of(rules: Rules) -> list[MetricText]:
    """Metrics that the final standings show beside it, as people read them."""
    return [_text_of(name, metric) for name, metric in zip(rules.also, rules.made_also(), strict=True)]


def halt_of(status: Status) -> Halt | None:
    """Why nothing new is scored; None if the guard has not halted."""
    if status.halt_reason is None:
        return None
    title, text = _HALTS[status.halt_reason]
    queries = status.queries_asked + status.queries_left
    return Halt(title, text.format(charges=status.charges, queries=queries))


def limits_of(rules: Rules, status: Status) -> list[tuple[str, str]]:
    """Limits of the competition: names and values."""
    limits = [
        ("Submissions of all teams together", f"{status.queries_asked + status.queries_left:,}"),
        (
            f"Charges of {'each team' if rules.policy == 'claims' else 'all teams together'}",
            f"{status.charges:,}",
        ),
    ]
    if rules.submissions_per_day is not None:
        limits.append((RULES["submissions_per_day"], f"{rules.submissions_per_day:,}"))
    if rules.most_submissions is not None:
        limits.append((RULES["submissions_per_team"], f"{rules.most_submissions:,}"))
    if rules.charges_per_team is not None:
        limits.append((RULES["charges_per_team"], f"{rules.charges_per_team:,}"))
    if status.has_fresh_labels:
        limits.append((RULES["final_picks"], f"{rules.final_picks:,}"))
    if rules.most_teams is not None:
        limits.append((RULES["most_teams"], f"{rules.most_teams:,}"))
    if rules.opens_at is not None:
        limits.append((RULES["opens_at"], moment(rules.opens_at)))
    if rules.closes_at is not None:
        limits.append((RULES["closes_at"], moment(rules.closes_at)))
    return limits


def own_limits_of(competition: Competition, team: Team, rows: list[Row]) -> list[tuple[str, str]]:
    """What a team has used of its limits."""
    rules = competition.rules
    own = next((row.one for row in rows if row.one.team_id == team.id), None)
    submissions = getattr(own, "submissions", 0)
    charges = 0 if own is None else getattr(own, "charges", None)
    limits = [("Submissions", _of(submissions, rules.most_submissions))]
    if charges is not None:
        most = rules.charges or ALLOWANCE if rules.policy == "claims" else rules.charges_per_team
        limits.append(("Charges", _of(charges, most)))
    if rules.submissions_per_day is not None:
        limits.append(("Most a day", f"{rules.submissions_per_day:,}"))
    return limits


def column_text_of(expected: Expected) -> str:
    """What a prediction is."""
    if expected.response == "labels":
        return "the class you predict"
    if expected.response == "probabilities":
        return "its probability, from 0 to 1"
    if expected.response == "scores":
        return "a number, the higher the likelier"
    return "the value you predict, a number"


def _of(used: int, most: int | None) -> str:
    return f"{used:,}" if most is None else f"{used:,} of {most:,}"
