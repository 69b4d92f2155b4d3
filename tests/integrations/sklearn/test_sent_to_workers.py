"""What holds a guard goes to workers with it; where its ledger is gone they say so."""

import multiprocessing
import pickle

import pytest
from cases import refuses
from joblib import Parallel, delayed, parallel_config
from reusable_holdout_sklearn import GuardedSearchCV, guarded_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from reusable_holdout.errors import LedgerError

MODEL, INNER = LogisticRegression(), GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2)
LONG = pytest.mark.long("reusable_holdout/guard", "integrations/reusable_holdout_sklearn")
pytestmark = [
    pytest.mark.usefixtures("fresh_workers"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def _guard_of(model):
    return type(model.guard).__name__


@pytest.mark.parametrize("method", [pytest.param("spawn", marks=LONG), "fork"])
def test_a_pool_of_multiprocessing_gets_the_guard_and_a_fitted_search_without_it(guard, fitted, method):
    asked = [(GuardedSearchCV(INNER, guard, ask="choose"),), (fitted,)]
    with multiprocessing.get_context(method).Pool(1) as pool:
        names = [pool.apply(_guard_of, one) for one in asked]
    # a fork knows the guards of the process that it was forked from
    assert names == ["ReusableHoldout", "FrozenGuard" if method == "spawn" else "ReusableHoldout"]


@pytest.mark.parametrize("guarded", [True, False])
def test_searches_that_come_back_from_workers_have_their_guard(guard, train, guarded):
    search = GuardedSearchCV(INNER, guard, ask="choose")
    if not guarded:
        search = GridSearchCV(MODEL, {"C": [0.01, 1.0]}, cv=2, scoring=guarded_scorer(guard))
    found = cross_validate(search, *train, cv=2, n_jobs=2, return_estimator=True, error_score="raise")
    for one in found["estimator"]:
        its = one.guard if guarded else one.scorer_.guard
        assert its.queries_asked == guard.queries_asked > 0


def test_a_handle_that_cannot_be_opened_is_loaded_and_opens_where_it_can_be(guard, tmp_path):
    blob, here = pickle.dumps(guard), tmp_path / "a_secret_folder"
    here.rename(tmp_path / "away")
    absent = pickle.loads(blob)
    for ask in (lambda: absent.queries_asked, absent.history, lambda: guarded_scorer(absent)):
        refuses(LedgerError, "must lie in", ask)
    assert not hasattr(absent, "metric")
    sent = pickle.dumps(absent)
    (tmp_path / "away").rename(here)
    assert pickle.loads(sent).queries_asked == 0


def _ask(guard, labels):
    return guard.evaluate(labels, prior=0.9)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_a_guard_in_memory_that_is_sent_to_workers_says_why_it_cannot_be(data, train, make_guard, backend):
    """The error is the guard's own, or loky's, which quotes it."""
    guard = make_guard(ledger=None)
    loops = [
        lambda: cross_val_score(MODEL, *train, scoring=guarded_scorer(guard), cv=2, n_jobs=2),
        lambda: cross_val_score(GuardedSearchCV(INNER, guard, ask="choose"), *train, cv=2, n_jobs=2),
        lambda: Parallel(2)(delayed(_ask)(guard, data[1][2_000:]) for _ in range(2)),
    ]
    for loop in loops:
        with parallel_config(backend), pytest.raises(pickle.PicklingError) as caught:
            loop()
        words = f"{caught.value} {caught.value.__cause__}"
        assert "keeps it in memory; give it a file or a server" in words
    assert guard.queries_asked == 0
