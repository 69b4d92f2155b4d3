"""What travels: the records of a competition as JSON, with one description for API, OpenAPI and clients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from reusable_holdout.deferred import pandas as pd
from reusable_holdout_leaderboard.store import records

__all__ = [
    "DisqualifyBody",
    "ErrorAnswer",
    "EvaluateBody",
    "EventAnswer",
    "FinalAnswer",
    "FreezeBody",
    "HeadBody",
    "MergeBody",
    "PicksBody",
    "RankAnswer",
    "RulesBody",
    "SignUpBody",
    "StandingAnswer",
    "StatusAnswer",
    "SubmissionAnswer",
    "TeamAnswer",
    "TeamBody",
    "TokenAnswer",
    "as_rows",
    "history_rows",
    "several",
]


def _model(record: Any) -> type[BaseModel]:
    """Model with the fields of a record, which its documentation explains."""
    hints = get_type_hints(record, vars(records) | {"datetime": datetime, "Literal": Literal})
    about = (record.__doc__ or "").split("\n", maxsplit=1)[0]
    made: type[BaseModel] = create_model(
        f"{record.__name__}Answer",
        __doc__=about,
        **{name: (kind, ...) for name, kind in hints.items()},  # type: ignore[call-overload]
    )
    return made


StandingAnswer = _model(records.Standing)
StatusAnswer = _model(records.Status)
SubmissionAnswer = _model(records.Submission)
RankAnswer = _model(records.RankPoint)
EventAnswer = _model(records.Event)
FinalAnswer = _model(records.FinalStanding)
TeamAnswer = _model(records.Team)


class _Error(BaseModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorAnswer(BaseModel):
    """Any error: a code for programs, a message for people."""

    error: _Error


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


Predictions = list[int] | list[str] | list[float] | list[list[float]]


class EvaluateBody(_Body):
    """Predictions in the order of the competition's rows; or several, which are asked one after the other.

    `prior` is the validation score that is claimed; a board of claims needs it, and a ladder takes none. With `anew`,
    a board of claims asks again about predictions that were answered before, at the team's own expense.
    """

    predictions: Predictions | None = None
    prior: float | None = None
    name: str = ""
    batch: Annotated[list[Predictions], Field(min_length=1, max_length=10_000)] | None = None
    priors: list[float] | None = None
    names: list[str] | None = None
    anew: bool = False


class HeadBody(_Body):
    """Head of a ledger that a witness is to hold, after the one that it was seen to hold."""

    head: Annotated[str, Field(max_length=97)]
    after: Annotated[str, Field(max_length=97)] = ""


class TeamBody(_Body):
    """A new team."""

    name: str


class SignUpBody(_Body):
    """A team that signs up, with the invitation code if one is asked for."""

    name: str
    code: Annotated[str, Field(max_length=200)] = ""


class TokenAnswer(BaseModel):
    """A team's token; it is shown this once."""

    team: str
    token: str


class PicksBody(_Body):
    """Numbers of the submissions that a team enters for the final standings; none for its best ones."""

    submissions: Annotated[list[Annotated[int, Field(ge=1, le=2**31 - 1)]], Field(max_length=100)]


class RulesBody(_Body):
    """Rules to be changed, by their names; null lifts a limit or a date."""

    changes: Annotated[dict[str, Any], Field(min_length=1, max_length=50)]


class DisqualifyBody(_Body):
    """Whether a team is disqualified."""

    on: bool = True


class MergeBody(_Body):
    """Number of the team that is merged into another."""

    other: Annotated[int, Field(ge=1, le=2**31 - 1)]


class FreezeBody(_Body):
    """Whether to take no new submissions."""

    on: bool = True


def several(model: type[BaseModel]) -> Any:
    """Type of a list of such bodies, for the description of an endpoint's answer."""
    return list[model]  # type: ignore[valid-type]


def as_rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Records as JSON objects."""
    return [one._asdict() for one in found]


def history_rows(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a guard's history; numbers that are none become null."""
    rows: list[dict[Any, Any]] = history.to_dict("records")
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value
