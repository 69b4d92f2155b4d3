"""A prior's own standard error: it widens its question's threshold, however large it is, and is checked as a number."""

import numpy as np
import pytest
from cases import for_each, refuses
from guard.forging import rewrite

from reusable_holdout import Question, verify
from reusable_holdout.errors import InputError

SETTLED = {"threshold": None, "queries": 40}


@for_each("error", [0.0, 0.05, 0.3, 1.0, 1e9])
def test_a_larger_error_of_the_prior_never_narrows_and_the_ledger_verifies(
    make_guard, ledger, scoring, error
):
    place = ledger.with_name(f"{error}.db")
    guard = make_guard(place, **SETTLED)
    own, plain = guard.ask(
        [
            Question("evaluate", scoring(0.7), 0.7, prior_error=error),
            Question("evaluate", scoring(0.7, 1), 0.7),
        ]
    )
    assert own.threshold >= plain.threshold
    assert own.low <= plain.low + 0.001
    assert own.high >= plain.high - 0.001
    assert verify(place).sound


def test_a_prior_is_no_surer_than_a_score_on_its_training_rows(make_guard, scoring):
    guard = make_guard(**SETTLED)
    few, many = np.zeros((100, 2)), np.zeros((2_000, 2))
    threshold = {
        (error, len(rows)): guard.ask(
            [Question("evaluate", scoring(0.7, place), 0.7, prior_error=error, X_train=rows)]
        )[0].threshold
        for place, (error, rows) in enumerate([(1e-9, few), (0.0, few), (1e-9, many), (0.2, few)])
    }
    assert threshold[1e-9, 100] > threshold[0.0, 100] == threshold[1e-9, 2_000]
    assert threshold[0.2, 100] > threshold[1e-9, 100]


@pytest.mark.parametrize(("prior", "threshold"), [(0.7, 5.0), (0.7, 1e6), (0.95, 2.0)])
def test_a_threshold_that_no_error_explains_does_not_verify(make_guard, ledger, scoring, prior, threshold):
    guard = make_guard(ledger, **SETTLED)
    assert guard.ask([Question("evaluate", scoring(0.7), prior)])[0].charged == (prior > 0.9)
    guard.close()
    rewrite(ledger, lambda rows: [row._replace(threshold=threshold, low=0.0, high=1.0) for row in rows])
    assert any("the threshold must be" in one for one in verify(ledger).problems)


@pytest.mark.parametrize("wrong", ["a", "0.02", True, None, 1j, [0.1, 0.2], np.nan, -0.1])
def test_an_error_that_is_no_standard_error_is_refused_and_free(make_guard, scoring, wrong):
    guard = make_guard(**SETTLED)
    question = Question("evaluate", scoring(0.7), 0.7, prior_error=wrong)
    refuses(InputError, "prior_error must be standard errors", guard.ask, [question])
    assert guard.queries_asked == 0


def test_a_final_names_the_models_of_each_metric_by_themselves(make_guard, scoring):
    guard = make_guard(**SETTLED)
    half = guard.on(sample_weight=np.arange(2_000) % 2, allow={"vacuous"})
    both, one = guard.final([scoring(0.7), scoring(0.8)], also=[(half, scoring(0.8))])[:2]
    assert (both.value, one.value) == (0.7, 0.8)
