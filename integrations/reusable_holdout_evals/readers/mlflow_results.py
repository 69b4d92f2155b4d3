"""Reader of the scores in a result of ``mlflow.genai.evaluate`` or a table of traces; MLflow is not imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import shown
from reusable_holdout.slips import checked_call
from reusable_holdout_evals.readers.files import parsed
from reusable_holdout_evals.readers.gathering import Gathering, Repeats, chosen_one, group_name

__all__ = ["read_mlflow"]

_Feedback = dict[str, list[Mapping[str, Any]]]
"""The valid feedback of one row: a list for each assessment's name."""


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
    """Read the scores of an evaluation by MLflow's genai scorers and judges.

    Parameters
    ----------
    result : EvaluationResult or pandas.DataFrame, or a sequence of them
        A result of ``mlflow.genai.evaluate``, its ``result_df``, or a table from ``mlflow.search_traces(run_id=...)``.
        Several results are repeats.
    assessment : str, optional
        Name of the scorer or judge; needed if there are several.
    id : str
        Key under which a row's inputs have its id.
    groups : str, optional
        Key of a row's inputs that names its group.
    repeats : {"equal", "averaged"}
        "equal" refuses results whose rows have different numbers of repeats. "averaged" gives each row the mean over
        its repeats.
    missing : float, optional
        Score of a row for which the scorer failed, such as the lowest score; by default such a result is refused.

    Returns
    -------
    ScoreTable
        The scores by id. Numbers stay as they are; true and "yes" become 1, false and "no" 0.

    Raises
    ------
    InputError
        If it is not such a result, ids are missing or come twice, or rows have no score, or one that is no number; the
        first few are named.
    """
    where = "the result of MLflow"
    gathering, others = (
        Gathering(where, repeats, missing, advice="choose another assessment"),
        dict[str, None](),
    )
    several = isinstance(result, Sequence) and not isinstance(result, str | bytes)
    for place, one in enumerate(result if several else [result]):
        rows = [(_inputs(request), _feedback(assessments)) for request, assessments in _columns(one)]
        names = [name for _, feedback in rows for name in feedback]
        assessment = chosen_one(assessment, names, what="assessment", where=where)
        others |= dict.fromkeys(name for name in names if name != assessment)
        for inputs, feedback in rows:
            row = _named(inputs, id)
            group = None if groups is None else group_name(inputs.get(groups), where="the result", row=row)
            value, nothing = _value(feedback.get(assessment, []), assessment, row)
            gathering.add(row, place, value, group=group, nothing=nothing)
    left_out = [f"other assessments: {shown(others)}"] if others else []
    return gathering.table(name="", metric=str(assessment), left_out=left_out)


def _columns(result: Any) -> list[tuple[Any, Any]]:
    """Return the inputs and the assessments of each row of a result."""
    frame = getattr(result, "result_df", result)
    columns = getattr(frame, "columns", ())
    if "request" not in columns or "assessments" not in columns:
        raise InputError(
            "the result must be of mlflow.genai.evaluate, or a table of its traces with columns 'request' and "
            f"'assessments'; got {type(result).__name__}; read other tables with read_scores"
        )
    return list(zip(frame["request"].tolist(), frame["assessments"].tolist(), strict=True))


def _inputs(request: Any) -> Mapping[str, Any]:
    inputs = parsed(request, "the inputs of a row") if isinstance(request, str) else request
    return inputs if isinstance(inputs, dict) else {}


def _feedback(assessments: Any) -> _Feedback:
    found: _Feedback = {}
    for one in assessments if isinstance(assessments, list) else []:
        told = one if isinstance(one, dict) else one.to_dictionary()  # older versions have objects here
        if isinstance(told.get("feedback"), dict) and told.get("valid") is not False:  # not replaced
            found.setdefault(str(told.get("assessment_name")), []).append(told["feedback"])
    return found


def _named(inputs: Mapping[str, Any], key: str) -> Any:
    name = inputs.get(key)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InputError(
            f"each row's inputs must have its id, text or a whole number, under {key!r}; one has "
            f"{'none' if name is None else type(name).__name__}; it has the keys {shown(inputs)}; name another "
            "key with id="
        )
    return name


def _value(found: list[Mapping[str, Any]], assessment: str, row: Any) -> tuple[Any, str]:
    """Return the value of a row's assessment, and the reason to report if this value is no score."""
    if len(found) > 1:
        raise InputError(
            f"each row must have one valid assessment {shown([assessment])}; {shown([row])} has {len(found)}; read "
            "the result of one evaluation"
        )
    if not found:
        return None, "there is no assessment"
    return found[0].get("value"), "the scorer failed" if found[0].get("error") else "it has no value"
