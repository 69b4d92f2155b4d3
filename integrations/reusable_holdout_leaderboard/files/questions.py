"""Predictions that come as JSON: one question, or several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from reusable_holdout_leaderboard.files.forms import Form, SubmissionError, shown

__all__ = ["Question", "read_question"]

_MOST_QUESTIONS = 10_000
_KNOWN = {"predictions", "prior", "name", "batch", "priors", "names", "anew"}
_NUMBERS = {bool, int, float}


class Question(NamedTuple):
    """What is asked.

    Attributes
    ----------
    values : numpy.ndarray of shape (questions, rows) or (questions, rows, columns)
        int64 or float64.
    coded : bool
        Whether values are places among the classes.
    several : bool
        Whether they came as a batch, though perhaps of one.
    priors : list of float or None
    names : list of str
    anew : bool
        Whether to ask though they were answered before.
    """

    values: NDArray[Any]
    coded: bool
    several: bool
    priors: list[float | None]
    names: list[str]
    anew: bool


def read_question(content: bytes, form: Form) -> Question:
    """Read the body of a request to evaluate, in memory that grows with it alone.

    Raises
    ------
    SubmissionError
        If it is anything else.
    """
    body = _object(content)
    batch, several = body.get("batch"), body.get("predictions") is None
    if (batch is None) == several:
        _refuse("the body must have predictions or a batch, and not both")
    given = batch if several else [body["predictions"]]
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_QUESTIONS:
        _refuse(f"a batch must have 1 to {_MOST_QUESTIONS:,} predictions")
    if not several and (body.get("priors") is not None or body.get("names") is not None):
        _refuse("priors and names must be one for each of a batch")
    if several and body.get("prior") is not None:
        _refuse("a batch has priors, one for each")
    priors = _each(body, "prior", len(given), None)
    if not all(one is None or type(one) in {int, float} for one in priors):
        _refuse("a prior must be a number")
    names = _each(body, "name", len(given), "")
    if not all(isinstance(one, str) for one in names):
        _refuse("a name must be text")
    anew = body.get("anew", False)
    if not isinstance(anew, bool):
        _refuse("anew must be true or false")
    parts = [_values(one, form) for one in given]
    if len({coded for _, coded in parts}) > 1:
        _refuse("predictions of a batch must be all numbers or all text")
    return Question(np.stack([values for values, _ in parts]), parts[0][1], several, priors, names, anew)


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        _refuse("the body must be a JSON object of finite numbers; it is not")
    unknown = [name for name in body if name not in _KNOWN]
    if unknown:
        _refuse(f"the body must have predictions or a batch; {shown(unknown[0])} is unknown")
    return body


def _each(body: dict[str, Any], name: str, count: int, otherwise: Any) -> list[Any]:
    """One for each question."""
    one = body.get(name)
    given = body.get(f"{name}s")
    if given is None:
        return [otherwise if one is None else one] * count
    if not isinstance(given, list) or len(given) != count:
        _refuse("priors and names must be one for each of a batch")
    return given


def _values(given: Any, form: Form) -> tuple[NDArray[Any], bool]:
    if not isinstance(given, list) or len(given) != form.rows:
        came = f"{len(given):,} came" if isinstance(given, list) else "something else came"
        _refuse(f"predictions must be one for each of {form.rows:,} rows; {came}")
    kinds = set(map(type, given))
    if kinds == {str}:
        return _coded(given, form), True
    if kinds == {list}:
        widths = set(map(len, given))
        if widths != {len(form.columns)} and widths != {len(form.classes)}:
            _refuse("predictions of several columns must have all of them in each row")
        kinds = set(map(type, chain.from_iterable(given)))
    if not kinds <= _NUMBERS:
        _refuse("predictions must be all numbers, or all text")
    try:
        values = np.array(given, dtype=np.float64 if float in kinds else np.int64)
    except OverflowError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        _refuse("predictions must be numbers of 64 bits")
    return values, False


def _coded(given: Sequence[str], form: Form) -> NDArray[np.int64]:
    places = {label: place for place, label in enumerate(form.classes)}
    codes = np.fromiter((places.get(one, -1) for one in given), np.int64, len(given))
    if (codes < 0).any():
        strange = given[int(np.argmin(codes))]
        listed = ", ".join(map(shown, form.classes[:10])) + (", ..." if len(form.classes) > 10 else "")
        _refuse(f"predictions must be {f'one of {listed}' if listed else 'numbers'}; {shown(strange)} came")
    return codes


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _refuse(problem: str) -> NoReturn:
    raise SubmissionError([problem])
