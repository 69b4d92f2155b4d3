"""Prefit, shuffled, nested and stopped loops give answers near the holdout's truth, or are refused and not charged."""

import numpy as np
import pytest
from conformance.truths import ASKING, REFUSED, SCORED, TOLERANCE, guarded_rows

from reusable_holdout.errors import Refused

LONG = pytest.mark.long(
    "integrations/reusable_holdout_sklearn", "reusable_holdout/guard", "tests/conformance"
)
JOBS = pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=LONG)])
pytestmark = [
    pytest.mark.usefixtures("fresh_workers"),
    pytest.mark.filterwarnings("ignore:.*is experimental", "ignore:.*optuna.terminator:FutureWarning"),
]

_DEFAULT_PLAN = {"tolerance": 0.1, "queries": 100, "estimate": 0.85}


def _reach(history):
    """Return how far an answer may be from the truth: a charged one as far as its interval says."""
    charged = history[history["charged"]]
    return max([TOLERANCE, *((charged["high"] - charged["low"]) / 2)])


@JOBS
@pytest.mark.parametrize("name", SCORED)
def test_the_scores_of_a_loop_are_near_the_truth_and_each_model_is_one_question(tmp_path, name, jobs):
    (loop, asked), rows = SCORED[name], guarded_rows(tmp_path, jobs=jobs, weighted="weighted" in name)
    found = np.asarray(loop(rows, rows.scorer), dtype=float)
    truth = np.asarray(loop(rows, rows.truth), dtype=float)
    np.testing.assert_allclose(found, truth, rtol=0, atol=_reach(rows.guard.history()))
    assert rows.guard.queries_asked == asked


@JOBS
@pytest.mark.parametrize("loop", ASKING)
def test_the_answers_of_a_loop_are_near_the_truth(tmp_path, loop, jobs):
    rows = guarded_rows(tmp_path, jobs=jobs, tolerance=0.1, estimate=0.85, choices=[4] * 5)
    found, truth = np.asarray(ASKING[loop](rows), dtype=float).T
    np.testing.assert_allclose(found, truth, rtol=0, atol=TOLERANCE)


@JOBS
@pytest.mark.parametrize("loop", REFUSED)
def test_a_loop_without_an_answer_is_refused_and_not_charged(tmp_path, loop, jobs):
    settings = _DEFAULT_PLAN if "GuardedSearchCV" in loop else {}
    rows = guarded_rows(tmp_path, jobs=jobs, weighted="weighted" in loop, **settings)
    with pytest.raises(Refused, match=r"nothing was (asked|charged|told)"):
        REFUSED[loop](rows)
    assert rows.guard.history()["charged"].sum() == 0
