"""Predictions that come as JSON: one question, or several that are asked one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import Halted, HoldoutError
from reusable_holdout_leaderboard.files.forms import SubmissionError
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import problem_of
from reusable_holdout_leaderboard.web.uploads import parsed
from reusable_holdout_leaderboard.web.wire import EvaluateBody, as_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout_leaderboard.competition import Competition
    from reusable_holdout_leaderboard.store.records import Submission, Team

__all__ = ["evaluate", "question"]

_NOTHING = "nothing was asked and nothing was charged"


def question(content: bytes) -> EvaluateBody:
    """Body of a request to evaluate.

    Raises
    ------
    Problem
        422.
    """
    body = parsed(content, EvaluateBody)
    problem = _misfit(body)
    if problem is not None:
        raise problem
    return body


def evaluate(competition: Competition, team: Team, body: EvaluateBody) -> dict[str, Any]:
    """Ask; the answers are those of before the first refusal, which is told beside them.

    Raises
    ------
    Problem, HoldoutError, Halted
        If a single question is refused, or one of several does not fit: then nothing was asked.
    """
    stopped = None
    if body.batch is None:
        done = [competition.submit_predictions(team.id, body.predictions, claimed=body.prior, name=body.name)]
    else:
        done, stopped = _in_turn(competition, team, body)
    return {
        "submissions": as_rows(done),
        "charges_left": competition.status().charges_left,
        "stopped": None if stopped is None else stopped.as_dict()["error"],
    }


def _in_turn(
    competition: Competition, team: Team, body: EvaluateBody
) -> tuple[list[Submission], Problem | None]:
    batch: Sequence[Any] = body.batch or []
    priors: Sequence[float | None] = body.priors or [None] * len(batch)
    names = body.names or [body.name] * len(batch)
    _check_all(competition, batch, priors)
    done: list[Submission] = []
    for predictions, prior, name in zip(batch, priors, names, strict=True):
        try:
            done.append(competition.submit_predictions(team.id, predictions, claimed=prior, name=name))
        except (HoldoutError, Halted) as error:
            return done, problem_of(error)
    return done, None


def _check_all(competition: Competition, batch: Sequence[Any], priors: Sequence[float | None]) -> None:
    """Refuse a batch of which one does not fit."""
    expected, metric = competition.expected, competition.metric
    for one in batch:
        expected.canonical(one)
    if any(prior is not None and not metric.lower <= prior <= metric.upper for prior in priors):
        raise SubmissionError(
            [
                f"a claimed score must be a number from {metric.lower:g} to {metric.upper:g}, the metric's range"
            ]
        )


def _misfit(body: EvaluateBody) -> Problem | None:
    batch = body.batch
    if (batch is None) == (body.predictions is None):
        return Problem(
            422, "bad_input", f"the body must have predictions or a batch, and not both; {_NOTHING}"
        )
    for given in (body.priors, body.names):
        if given is not None and (batch is None or len(given) != len(batch)):
            return Problem(422, "bad_input", f"priors and names must be one for each of a batch; {_NOTHING}")
    if batch is not None and body.prior is not None:
        return Problem(422, "bad_input", f"a batch has priors, one for each; {_NOTHING}")
    return None
