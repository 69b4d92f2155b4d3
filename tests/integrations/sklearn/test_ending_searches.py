"""A search that ends a project: one final over its candidates, which names the best and certifies it."""

import numpy as np
import pytest
from cases import refuses
from integrations.sklearn.models import Counting, TreeFailsOnTheHoldout
from integrations.sklearn.test_choosing_searches import TREE, fits_of, trees
from reusable_holdout_sklearn import GuardedSearchCV
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from reusable_holdout import verify
from reusable_holdout.errors import Halted, InputError, ModelError, Refused


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_candidates_are_certified_together_and_the_best_is_kept(make_guard, data, train, jobs):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard, n_jobs=jobs).fit(*train)
    means = search.cv_results_["mean_test_score"]
    told = search.guard_results_
    assert told["cv_mean"].tolist() == means.tolist()
    assert guard.queries_asked == 0
    assert guard.halt_reason == "final"
    assert guard.charges_left == guard.plan.charges
    X, y = (part[2_000:] for part in data)
    models = [clone(TREE).set_params(**one).fit(*train) for one in search.cv_results_["params"]]
    assert told["answer"].tolist() == pytest.approx([model.score(X, y) for model in models], abs=1e-9)
    assert search.best_index_ == told["low"].idxmax()
    assert search.best_answer_.low == told["low"].max()
    assert np.array_equal(search.best_estimator_.predict(X), models[search.best_index_].predict(X))
    assert search.best_answer_.high - search.best_answer_.low < 2.0 * 1.45 * guard.plan.one_look
    assert verify(guard.ledger).problems == []


def test_a_second_fit_is_a_free_replay_or_is_refused_before_its_models_are_fitted(make_guard, train):
    guard = make_guard()
    first = GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard)
    assert fits_of_fitted(first, train) == 6 * 3 + 6
    Counting.fits = 0  # an attribute of the class is a part of the model
    again = GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard).fit(*train)
    assert again.best_answer_ == first.best_answer_._replace(replayed=True)
    assert guard.answered == 6
    fewer = GuardedSearchCV(trees(Counting(random_state=0)), guard, candidates=3)
    assert fits_of(fewer, train, Halted) == 0
    other = GuardedSearchCV(trees(Counting(random_state=1, min_samples_leaf=9), refit=False), guard)
    assert fits_of(other, train, Halted) == 6 * 3  # its priors say that it is another search


def fits_of_fitted(search, train):
    """Number of models that a search fits."""
    Counting.fits = 0
    search.fit(*train)
    return Counting.fits


def test_loops_that_would_want_a_final_in_each_fold_are_refused_before_anything_is_fitted(make_guard, train):
    guard, model = make_guard(), Counting(random_state=0)
    search = GuardedSearchCV(trees(model), guard)
    Counting.fits = 0
    caught = refuses(Refused, "each fold", cross_val_score, search, *train, cv=2, error_score="raise")
    assert 'ask="choose"' in str(caught)
    assert fits_of(clone(search), train, Refused) == 0
    assert guard.answered == 0


def test_a_candidate_that_fails_has_no_answer_and_the_others_have_theirs(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(TreeFailsOnTheHoldout(random_state=0, until=3)), guard).fit(*train)
    assert np.isnan(search.guard_results_["answer"]).tolist() == [depth <= 3 for depth in (1, 2, 3, 5, 8, 12)]
    assert not search.guard_results_["charged"].any()
    assert search.best_params_["max_depth"] > 3
    none = GuardedSearchCV(trees(TreeFailsOnTheHoldout(random_state=0, until=99)), make_guard())
    refuses(ModelError, "6 of 6", none.fit, *train)


def test_a_plan_that_keeps_no_share_for_a_final_is_refused_before_anything_is_fitted(make_guard, train):
    guard = make_guard(final_share=0.0)
    assert fits_of(GuardedSearchCV(trees(Counting(random_state=0)), guard), train, InputError) == 0
