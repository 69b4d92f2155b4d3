"""Models of the JSON that the API reads and returns, and their descriptions for OpenAPI."""

from __future__ import annotations

import math
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from reusable_holdout.deferred import pandas as pd
from reusable_holdout_leaderboard.actions import Action, File
from reusable_holdout_leaderboard.store import records

__all__ = [
    "Answered",
    "ErrorAnswer",
    "MyTeam",
    "PicksBody",
    "SignUpBody",
    "as_json",
    "body_of",
    "form_body",
    "history_rows",
    "json_body",
    "model_of",
    "refusals",
]

_REASONS = {
    400: "the request cannot be read",
    401: "no token, or an unknown one",
    404: "no such competition, or nothing there yet",
    408: "the body arrived too slowly",
    409: "closed, halted, or not yet",
    413: "too large",
    415: "another media type is needed",
    422: "the input does not fit; nothing was asked",
    429: "a rate or a limit",
}
Model = type[BaseModel]


@cache
def model_of(record: Any) -> Model:
    """Return a Pydantic model with the same fields as a class of records, such as Standing."""
    hints = get_type_hints(record, vars(records) | {"datetime": datetime, "Literal": Literal})
    about = (record.__doc__ or "").split("\n", maxsplit=1)[0]
    made: Model = create_model(
        f"{record.__name__}Answer",
        __doc__=about,
        **{name: (_modelled(kind), ...) for name, kind in hints.items()},  # type: ignore[call-overload]
    )
    return made


def _modelled(kind: Any) -> Any:
    """Return the type that a field has in a model. Records, and lists of records, are replaced by their models."""
    if kind is records.Status:
        return model_of(kind)
    (inner,) = getattr(kind, "__args__", (None,))[:1] or (None,)
    return list[model_of(inner)] if inner in {records.Standing, records.Team} else kind  # type: ignore[misc]


_CHARGES_LEFT: dict[str, Any] = {"charges_left": (int | None, ...)}
MyTeam = create_model("MyTeam", __base__=model_of(records.Team), __doc__="Your team.", **_CHARGES_LEFT)
Answered = create_model(
    "Answered", __base__=model_of(records.Submission), __doc__="An answer.", **_CHARGES_LEFT
)


def as_json(found: Any) -> Any:
    """Return records, and lists of records, as dictionaries and lists that can be written as JSON."""
    if isinstance(found, list):
        return [as_json(one) for one in found]
    if hasattr(found, "_asdict"):
        return {name: as_json(value) for name, value in found._asdict().items()}
    return found


def history_rows(history: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a guard's history as dictionaries for JSON. Missing numbers become null."""
    rows: list[dict[Any, Any]] = history.to_dict("records")
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


class _Error(BaseModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorAnswer(BaseModel):
    """An error, with a code for programs and a message for people."""

    error: _Error


# ---- bodies


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SignUpBody(_Body):
    """The name of a team that signs up, and the invitation code if one is needed."""

    name: str
    code: Annotated[str, Field(max_length=200)] = ""


class PicksBody(_Body):
    """Numbers of the submissions with which a team enters the final standings. If empty, its best ones are entered."""

    submissions: Annotated[list[Annotated[int, Field(ge=1, le=2**31 - 1)]], Field(max_length=100)]


@cache
def body_of(action: Action) -> Model:
    """Return the Pydantic model of an action's arguments. A file is left out of it."""
    fields: dict[str, Any] = {}
    for one in action.fields:
        if one.kind is not File:
            kind: Any = dict[str, Any] if one.kind is dict else one.kind
            kind = kind | None if one.default is None else kind
            fields[one.name] = (kind, Field(one.default, description=one.about))
    name = "".join(part.capitalize() for part in action.name.split("-"))
    made: Model = create_model(f"{name}Body", __base__=_Body, __doc__=f"{action.about}.", **fields)
    return made


# ---- descriptions for OpenAPI


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the statuses with which a route may refuse a request."""
    return {status: {"model": ErrorAnswer, "description": _REASONS[status]} for status in sorted(statuses)}


def json_body(model: Model) -> dict[str, Any]:
    """Return the OpenAPI description of a JSON body. The route reads it by itself after it has checked the sender."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def form_body(file: str = "file", *texts: str) -> dict[str, Any]:
    """Return the OpenAPI description of a form with one file and some text fields.

    The route reads the form by itself after it has checked the sender.
    """
    properties = {file: {"type": "string", "format": "binary"}} | {name: {"type": "string"} for name in texts}
    schema = {"type": "object", "required": [file], "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
