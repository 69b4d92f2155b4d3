"""Predictions that come as JSON: one question, or several that are asked one after the other."""

from __future__ import annotations

from typing import Any

from reusable_holdout.errors import Halted, HoldoutError
from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.files.questions import Question
from reusable_holdout_leaderboard.store.records import Submission, Team
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import problem_of
from reusable_holdout_leaderboard.web.wire import as_rows

__all__ = ["evaluate"]


def evaluate(competition: Competition, team: Team, asked: Question) -> dict[str, Any]:
    """Ask; the answers are those of before the first refusal, which is told beside them.

    Raises
    ------
    Problem, HoldoutError, Halted
        If a single question is refused, or one of several does not fit: then nothing was asked.
    """
    _check_all(competition, asked)
    done: list[Submission] = []
    stopped: Problem | None = None
    for values, prior, name in zip(_predictions(competition, asked), asked.priors, asked.names, strict=True):
        try:
            done.append(
                competition.submit_predictions(team.id, values, claimed=prior, name=name, anew=asked.anew)
            )
        except (HoldoutError, Halted) as error:
            if not asked.several:
                raise
            stopped = problem_of(error)
            break
    return {
        "submissions": as_rows(done),
        "charges_left": competition.charges_left_of(team.id),
        "stopped": None if stopped is None else stopped.as_dict()["error"],
    }


def _predictions(competition: Competition, asked: Question) -> Any:
    expected = competition.expected
    return (expected.decoded(values) if asked.coded else values for values in asked.values)


def _check_all(competition: Competition, asked: Question) -> None:
    """Refuse a batch of which one does not fit."""
    if not asked.several:
        return
    for one in _predictions(competition, asked):
        competition.expected.canonical(one)
    metric = competition.metric
    if any(prior is not None and not metric.lower <= prior <= metric.upper for prior in asked.priors):
        raise SubmissionError(
            [
                f"a claimed score must be a number from {metric.lower:g} to {metric.upper:g}, the metric's range"
            ]
        )
