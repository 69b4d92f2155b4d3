"""The content of the page that shows a board. It has released values only, and is made once after each change."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from reusable_holdout import Metric
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.pages.scales import Bar, Scale, scale_of
from reusable_holdout_leaderboard.pages.words import Change, MetricText, also_texts, changes_of
from reusable_holdout_leaderboard.store.records import FinalStanding, RankPoint, Standing, Status
from reusable_holdout_leaderboard.web.boards import Boards
from reusable_holdout_leaderboard.web.intake import whole_of

__all__ = ["Part", "Row", "board_content", "part_of"]

_MOST_MOVES = 100
_TEAMS_A_PAGE = 50
_LONGEST_SEARCH = 64


class Row(NamedTuple):
    """A team's standing, and the bar that draws its interval on the page."""

    one: Standing | FinalStanding
    bar: Bar | None


class Part(NamedTuple):
    """One page of a long board.

    Attributes
    ----------
    rows : list of Row
        Rows of the board on this page.
    number, pages : int
        Number of this page, from 1, and number of all pages.
    found : int
        Number of teams on all pages.
    search : str
        Text that the teams' names contain. Empty if nothing was searched for.
    """

    rows: list[Row]
    number: int
    pages: int
    found: int
    search: str


class _Board(NamedTuple):
    """The content of a board's page that is the same for all readers until the board changes."""

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


def board_content(boards: Boards, competition: Competition, status: Status) -> dict[str, Any]:
    """Return the board, its recent history and the final standings, as values for a page's template.

    They are made once after each change of the board, and kept in memory.
    """
    made = partial(_board, competition, final=status.final)
    return boards.at_revision(competition, ("page", status.final), made)._asdict()


def part_of(rows: list[Row], scale: Scale | None, *, search: str, page: str) -> Part:
    """Return one page of the teams whose names contain a text. If the page does not exist, return the nearest one."""
    search = search.strip()[:_LONGEST_SEARCH]
    found = [row for row in rows if search.casefold() in row.one.team.casefold()] if search else rows
    pages = max(1, -(-len(found) // _TEAMS_A_PAGE))
    number = min(whole_of(page) or 1, pages)
    begins = (number - 1) * _TEAMS_A_PAGE
    shown = [_drawn(row.one, scale) for row in found[begins : begins + _TEAMS_A_PAGE]]
    return Part(shown, number, pages, len(found), search)


def _board(competition: Competition, *, final: bool) -> _Board:
    metric, standings, moves = competition.metric, competition.board(), competition.rank_history()
    made = competition.final_standings() if final else []  # they are stored: nothing is scored here
    scale, final_scale = _scale_of(standings, metric), _scale_of(made, metric)
    return _Board(
        rows=[Row(one, None) for one in standings],
        scale=scale,
        lead=_lead(standings, scale, greater_is_better=metric.greater_is_better),
        moves=moves[: -_MOST_MOVES - 1 : -1],
        moves_left_out=len(moves) > _MOST_MOVES,
        final=[_drawn(one, final_scale) for one in made],
        final_scale=final_scale,
        also=also_texts(competition.rules) if made else [],
        compared=competition.compares_neighbours,
        change=next(iter(changes_of(competition.changes())), None),
    )


def _scale_of(standings: list[Standing] | list[FinalStanding], metric: Metric) -> Scale | None:
    ranked = [one for one in standings if one.rank is not None]
    ends = [end for one in ranked for end in (one.low, one.high) if end is not None]
    return scale_of(ends, lower=metric.lower, upper=metric.upper) if ends else None


def _drawn(one: Standing | FinalStanding, scale: Scale | None) -> Row:
    if scale is None or one.rank is None or one.low is None or one.high is None or one.value is None:
        return Row(one, None)
    return Row(one, scale.bar(one.low, one.high, one.value))


def _lead(standings: list[Standing], scale: Scale | None, *, greater_is_better: bool) -> float | None:
    """Return the position on the scale that a team's bar must reach for the team to be tied for the first rank."""
    if scale is None or len(standings) < 2:
        return None
    ranked = [one for one in standings if one.rank is not None]
    if greater_is_better:
        return scale.at(max(one.low for one in ranked if one.low is not None))
    return scale.at(min(one.high for one in ranked if one.high is not None))
