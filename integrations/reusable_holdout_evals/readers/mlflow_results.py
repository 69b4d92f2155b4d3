"""Scores in what ``mlflow.genai.evaluate`` returns, or in a table of traces; MLflow is not imported for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.gathering import (
    Gathering,
    Missing,
    Repeats,
    Table,
    chosen_one,
    group_name,
    score_of,
)
from reusable_holdout_evals.readers.json_files import Pieces

__all__ = ["read_mlflow"]


class _Row(NamedTuple):
    """One trace.

    Attributes
    ----------
    inputs : Mapping
        Of the row.
    feedback : dict
        Valid values by the assessment's name; several of one name in a list.
    """

    inputs: Mapping[str, Any]
    feedback: dict[str, list[Mapping[str, Any]]]


@checked_call
def read_mlflow(
    result: Any,
    *,
    assessment: str | None = None,
    id: str = "id",  # noqa: A002 - as in guarded_genai_scorer
    groups: str | None = None,
    repeats: Repeats = "equal",
    missing: float | None = None,
) -> ScoreTable:
    """Scores of an evaluation by MLflow's genai scorers and judges.

    Parameters
    ----------
    result : EvaluationResult or pandas.DataFrame, or a sequence of them
        What ``mlflow.genai.evaluate`` returned, its ``result_df``, or what ``mlflow.search_traces(run_id=...)`` gives
        later. Several are repeats.
    assessment : str, optional
        Name of the scorer or judge; needed where there are several.
    id : str
        Which of a row's inputs is its id.
    groups : str, optional
        Which of its inputs says what it belongs to.
    repeats : {"equal", "averaged"}
        What to do where rows have unequally many repeats: refuse, or average those that are there.
    missing : float, optional
        What counts where a scorer failed, such as the lowest score; by default that is refused.

    Returns
    -------
    ScoreTable
        Numbers as they are; true and "yes" are 1, false and "no" 0.

    Raises
    ------
    InputError
        If it is no such result, ids are missing or come twice, or rows have no score, or no number; the first few are
        named.
    """
    wish = Table(repeats, missing)
    wish.check()
    several = isinstance(result, Sequence) and not isinstance(result, str | bytes)
    gathering, others = Gathering("the result of MLflow"), dict[str, None]()
    for place, one in enumerate(result if several else [result]):
        rows = [_row(*pair) for pair in _columns(one)]
        names = [name for row in rows for name in row.feedback]
        assessment = chosen_one(
            assessment, names, what="assessment", option="assessment", where="the result of MLflow"
        )
        others |= dict.fromkeys(name for name in names if name != assessment)
        for row in rows:
            name = _named(row, id)
            group = (
                None if groups is None else group_name(row.inputs.get(groups), where="the result", row=name)
            )
            gathering.add(name, place, _score(row, assessment, name), group)
    left_out = [f"other assessments: {shown(others)}"] if others else []
    return gathering.table(wish, name="", metric=str(assessment), left_out=left_out)


def _columns(result: Any) -> list[tuple[Any, Any]]:
    """Inputs and assessments of each row."""
    frame = getattr(result, "result_df", result)
    columns = getattr(frame, "columns", ())
    if "request" not in columns or "assessments" not in columns:
        raise InputError(
            "the result must be what mlflow.genai.evaluate returns, or a table of its traces with columns 'request' "
            f"and 'assessments'; got {type(result).__name__}; read other tables with read_scores"
        )
    return list(zip(frame["request"].tolist(), frame["assessments"].tolist(), strict=True))


def _row(request: Any, assessments: Any) -> _Row:
    inputs = Pieces(request, "the inputs of a row").value() if isinstance(request, str) else request
    feedback: dict[str, list[Mapping[str, Any]]] = {}
    for one in assessments if isinstance(assessments, list) else []:
        found = one if isinstance(one, dict) else one.to_dictionary()  # older versions keep the entities
        if (
            isinstance(found.get("feedback"), dict) and found.get("valid") is not False
        ):  # overridden ones are not
            feedback.setdefault(str(found.get("assessment_name")), []).append(found["feedback"])
    return _Row(inputs if isinstance(inputs, dict) else {}, feedback)


def _named(row: _Row, key: str) -> Any:
    name = row.inputs.get(key)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InputError(
            f"each row's inputs must have its id, text or a whole number, under {key!r}; one has "
            f"{'none' if name is None else type(name).__name__}; it has the keys {shown(row.inputs)}; name another "
            "with id="
        )
    return name


def _score(row: _Row, assessment: str, name: Any) -> float | Missing:
    found = row.feedback.get(assessment, [])
    if not found:
        return Missing("there is no assessment")
    if len(found) > 1:
        raise InputError(
            f"each row must have one valid assessment {shown([assessment])}; {shown([name])} has {len(found)}; read "
            "the result of one evaluation"
        )
    number = score_of(
        found[0].get("value"),
        must=lambda: (
            f"assessments must be numbers, yes or no, also that of {shown([assessment])} for {shown([name])}"
        ),
        advice="take another",
    )
    if number is not None:
        return number
    return Missing("the scorer failed" if found[0].get("error") else "it has no value")
