"""Score tables of what mlflow.genai.evaluate returned, and of its traces as they are found later."""

import mlflow
import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer
from reusable_holdout_evals import read_mlflow

from reusable_holdout.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*")


def refused(*arguments, **options):
    caught = refuses(InputError, "", read_mlflow, *arguments, **options)
    return str(caught)


@scorer
def exact(outputs, expectations):
    return outputs == expectations["answer"]


@scorer
def polite(outputs):
    return "yes" if outputs == "1" else "no"


@scorer
def graded(outputs):
    if outputs == "2":
        raise ValueError("no grade")
    return Feedback(value=0.5, rationale="so")


@pytest.fixture
def evaluated(database, monkeypatch):
    """Result of a real evaluation, and its traces as they are found later."""
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "2")
    mlflow.set_tracking_uri(database)
    mlflow.set_experiment("judged")
    rows = [({"id": f"q{k}", "topic": k // 2}, str(k % 3), {"answer": str(k % 2)}) for k in range(6)]
    data = [dict(zip(("inputs", "outputs", "expectations"), row, strict=True)) for row in rows]
    result = mlflow.genai.evaluate(data=data, scorers=[exact, polite, graded])
    yield result, mlflow.search_traces(run_id=result.run_id)
    mlflow.set_tracking_uri(None)


@for_each("place", [0, 1])
def test_assessments_of_an_evaluation_and_of_its_traces(evaluated, place):
    result = evaluated[place]
    words = refused(result)
    assert all(name in words for name in ("exact", "polite", "graded", "assessment="))
    assert "answer" not in words  # an expectation is no score
    scores = {name: read_mlflow(result, assessment=name) for name in ("exact", "polite")}
    found = {name: dict(zip(table.ids, table.scores.tolist(), strict=True)) for name, table in scores.items()}
    assert found["exact"] == {f"q{k}": float(k % 3 == k % 2) for k in range(6)}
    assert found["polite"] == {f"q{k}": float(k % 3 == 1) for k in range(6)}
    assert "2 because the scorer failed" in refused(result, assessment="graded")
    table = read_mlflow(result, assessment="graded", groups="topic", missing=0)
    assert sorted(zip(table.ids, table.groups, table.scores.tolist(), strict=True)) == [
        (f"q{k}", str(k // 2), 0.0 if k % 3 == 2 else 0.5) for k in range(6)
    ]


def test_results_of_mlflow_are_repeats_and_rows_need_ids(evaluated):
    result, _ = evaluated
    table = read_mlflow([result, result.result_df], assessment="exact")
    assert np.array_equal(table.scores[:, 0], table.scores[:, 1])
    words = refused(result, assessment="exact", id="name")
    assert "under 'name'; one has none; it has the keys" in words
    doubled = pd.concat([result.result_df, result.result_df.iloc[:1]])
    assert "twice" in refused(doubled, assessment="exact")
    assert "got DataFrame; read other tables with read_scores" in refused(pd.DataFrame({"id": [1]}))


def test_a_corrected_assessment_replaces_the_first(evaluated):
    frame = evaluated[0].result_df.copy()
    listed = frame["assessments"].iloc[0]
    (first,) = (one for one in listed if one["assessment_name"] == "exact")
    corrected = first | {"feedback": {"value": not first["feedback"]["value"]}}
    others = frame["assessments"].tolist()[1:]
    frame["assessments"] = [[*listed, corrected], *others]
    assert "has 2; read the result of one evaluation" in refused(frame, assessment="exact")
    replaced = [one | {"valid": False} if one is first else one for one in listed]
    frame["assessments"] = [[corrected, *replaced], *others]
    table = read_mlflow(frame, assessment="exact")
    assert table.scores[0] == corrected["feedback"]["value"]
