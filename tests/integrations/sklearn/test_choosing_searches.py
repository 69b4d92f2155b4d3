"""A search that asks one question: which of its candidates is best by the holdout."""

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from integrations.sklearn.models import Counting, TreeFailsOnTheHoldout
from reusable_holdout_sklearn import GuardedSearchCV
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import verify
from reusable_holdout.errors import BudgetError, Halted, InputError, ModelError, Refused

DEPTHS = {"max_depth": [1, 2, 3, 5, 8, 12]}
TREE, MODEL = DecisionTreeClassifier(random_state=0), LogisticRegression()


def trees(model=TREE, **settings):
    return GridSearchCV(model, DEPTHS, cv=3, **settings)


def fits_of(search, train, error):
    """Number of models that were fitted before it was refused."""
    Counting.fits = 0
    refuses(error, "", search.fit, *train)
    return Counting.fits


# ---- what is asked, and what is told


def test_it_is_one_question_that_takes_a_query_for_each_candidate_and_no_charge(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard, ask="choose").fit(*train)
    (row,) = guard.history().to_dict("records")
    assert (row["way"], row["name"], row["charged"]) == ("choose", "best of 6", False)
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert guard.charges_left == guard.plan.charges
    assert row["prior"] == search.cv_results_["mean_test_score"][search.best_index_]
    assert search.best_answer_.nats == row["nats"] > 0
    assert verify(guard.ledger).sound
    models = [clone(TREE).set_params(**one).fit(*train) for one in search.cv_results_["params"]]
    choice = guard.choose(models, search.cv_results_["mean_test_score"].tolist())
    assert choice.answer == search.best_answer_._replace(replayed=True)
    assert choice.index == search.best_index_


def test_the_winner_is_the_best_on_the_holdout_whatever_cross_validation_says(make_guard, data, train):
    """Trained on labels that are wrong, the model that learnt least is the best: the priors' last."""
    X, y = data
    three = GridSearchCV(TREE, {"max_depth": [1, 5, 12]}, cv=3)
    wrong = np.where(np.arange(2_000) % 3 == 0, train[1], 1 - train[1])
    for labels in (train[1], wrong):
        guard = make_guard()
        search = GuardedSearchCV(three, guard, ask="choose").fit(train[0], labels)
        models = [clone(TREE).set_params(**one).fit(train[0], labels) for one in search.cv_results_["params"]]
        scores = [model.score(X[2_000:], y[2_000:]) for model in models]
        best = int(np.argmax(scores))
        assert sorted(scores)[-1] - sorted(scores)[-2] > 0.002  # more than the noise of a choice
        assert search.best_index_ == best
        assert search.best_params_ == search.cv_results_["params"][best]
        assert search.best_answer_.low < scores[best] < search.best_answer_.high
        assert search.best_score_ == search.best_answer_.value
        np.testing.assert_array_equal(search.predict(X), models[best].predict(X))
    assert search.best_index_ != np.argmax(search.cv_results_["mean_test_score"])


def test_the_table_has_an_answer_for_the_winner_alone(make_guard, train):
    search = GuardedSearchCV(trees(), make_guard(), ask="choose").fit(*train)
    results, best = search.guard_results_, search.best_index_
    assert results["candidate"].tolist() == list(range(6))
    assert results["cv_mean"].tolist() == search.cv_results_["mean_test_score"].tolist()
    others = results.drop(index=best)
    assert others[["answer", "low", "high", "query"]].isna().all(axis=None)
    assert not results[["charged", "replayed"]].any(axis=None)
    taken, answer = results.loc[best], search.best_answer_
    assert (taken["answer"], taken["low"], taken["high"]) == (answer.value, answer.low, answer.high)
    assert taken["query"] == answer.query == 1


def test_only_the_best_by_cross_validation_are_asked_about_if_so_wished(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard, candidates=2, ask="choose").fit(*train)
    ranks, asked = search.cv_results_["rank_test_score"], search.guard_results_["candidate"]
    assert ranks[asked].max() < ranks[np.setdiff1d(np.arange(6), asked)].min()
    assert asked.is_monotonic_increasing
    assert guard.queries_asked == 2


@pytest.mark.parametrize(
    ("inner", "asked"),
    [
        (RandomizedSearchCV(TREE, DEPTHS, n_iter=4, random_state=0, cv=3), 4),
        (HalvingGridSearchCV(TREE, DEPTHS, random_state=0, cv=3, factor=2), 2),
        (HalvingRandomSearchCV(TREE, DEPTHS, n_candidates=6, random_state=0, cv=3, factor=2), 2),
    ],
)
def test_other_searches_work_and_halving_is_asked_about_its_last_round(make_guard, train, inner, asked):
    guard = make_guard()
    search = GuardedSearchCV(inner, guard, ask="choose").fit(*train)
    results = search.cv_results_
    last = np.flatnonzero(results["iter"] == results["iter"].max()) if "iter" in results else range(4)
    assert search.guard_results_["candidate"].tolist() == list(last)
    assert guard.queries_asked == asked
    assert search.best_index_ in last


# ---- again, and elsewhere


def test_the_same_search_again_is_a_replay_and_free_even_without_room_for_another(make_guard, train):
    guard = make_guard(tolerance=None, charges=3, choices=[6])
    first = GuardedSearchCV(trees(), guard, ask="choose").fit(*train)
    assert not guard.price("choose", candidates=6).allowed
    again = GuardedSearchCV(trees(n_jobs=2), guard, ask="choose").fit(*train)
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert again.best_answer_ == first.best_answer_._replace(replayed=True)
    assert again.guard_results_["replayed"].tolist() == [i == first.best_index_ for i in range(6)]


def test_a_replay_is_free_after_a_halt_and_anything_else_halts_before_it_is_refitted(make_guard, train):
    X, y = train
    guard = make_guard(queries=6, tolerance=0.2)
    first, again, other = (
        GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard, ask="choose") for _ in range(3)
    )
    Counting.fits = 0  # an attribute of the class is a part of the model
    first.fit(X, y)
    assert guard.halt_reason == "queries"
    Counting.fits = 0
    assert again.fit(X, y).best_answer_ == first.best_answer_._replace(replayed=True)
    assert fits_of(other, (X[:1_000], y[:1_000]), Halted) == 3 * 6  # other priors: it was not asked before
    assert len(other.guard_results_) == 0
    assert not hasattr(other, "best_estimator_")
    assert len(other.search_.cv_results_["params"]) == 6


# ---- candidates that fail


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("until", "words"), [(3, "is number 4"), (99, "withheld")])
def test_a_candidate_that_fails_on_the_holdout_fails_the_choice_which_names_the_best_of_the_others(
    make_guard, train, jobs, until, words
):
    guard = make_guard()
    search = GuardedSearchCV(
        trees(TreeFailsOnTheHoldout(random_state=0, until=until), n_jobs=jobs), guard, ask="choose"
    )
    for _ in range(2):  # a failure is replayed, too
        caught = refuses(ModelError, words, search.fit, *train)
        assert "private" not in str(caught)
    assert guard.history()["told"].str.endswith("failed").all()
    assert guard.history()["charged"].tolist() == [False]
    assert guard.history()["nats"][0] > 0
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert not hasattr(search, "best_answer_")


class FailsToFit(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth == 3:
            raise ValueError("no")
        return super().fit(X, y, sample_weight, check_input)


def test_a_candidate_without_a_score_is_not_asked_about(make_guard, train):
    guard = make_guard()
    with pytest.warns((FitFailedWarning, UserWarning)):
        search = GuardedSearchCV(trees(FailsToFit(random_state=0)), guard, ask="choose").fit(*train)
    assert search.guard_results_["candidate"].tolist() == [0, 1, 3, 4, 5]
    assert guard.queries_asked == 5


# ---- refused


def test_a_choice_that_the_plan_does_not_allow_is_refused_before_anything_is_fitted(make_guard, train):
    none, few, short = (
        make_guard(tolerance=None, charges=3),
        make_guard(tolerance=None, charges=3, choices=[2]),
        make_guard(queries=5, tolerance=0.2),
    )
    grid = trees(Counting(random_state=0))
    random = RandomizedSearchCV(grid.estimator, DEPTHS, n_iter=5, random_state=0, cv=3)
    for guard, inner, error in [
        (none, grid, InputError),
        (none, random, InputError),
        (few, grid, InputError),
        (few, random, InputError),
        (short, grid, BudgetError),
    ]:
        assert not guard.price("choose", candidates=5 if inner is random else 6).allowed
        assert fits_of(GuardedSearchCV(inner, guard, ask="choose"), train, error) == 0
        assert guard.answered == 0
    late = GuardedSearchCV(Bare(grid.estimator, DEPTHS["max_depth"]), few, prior="score", ask="choose")
    assert (
        fits_of(late, train, InputError) == 6 * 3
    )  # the number of its candidates is known after its own fit
    search = GuardedSearchCV(trees(grid.estimator, refit=False), few, candidates=2, ask="choose").fit(*train)
    assert few.queries_asked == len(search.guard_results_) == 2


# ---- searches that are not scikit-learn's


class Bare(BaseEstimator):
    """A search of one's own, which ranks nothing."""

    def __init__(self, estimator, depths):
        self.estimator = estimator
        self.depths = depths

    def fit(self, X, y):
        told = (
            GridSearchCV(self.estimator, {"max_depth": self.depths}, cv=3, refit=False).fit(X, y).cv_results_
        )
        self.cv_results_ = {name: column for name, column in told.items() if "rank" not in name}
        return self


@for_each("ask", ["choose", "evaluate"])
def test_a_search_without_ranks_is_ranked_by_its_means(make_guard, train, ask):
    own, plain = (
        GuardedSearchCV(inner, make_guard(), ask=ask, candidates=3, prior="score").fit(*train)
        for inner in (Bare(TREE, DEPTHS["max_depth"]), trees())
    )
    pd.testing.assert_frame_equal(own.guard_results_, plain.guard_results_)
    assert own.best_params_ == plain.best_params_
    np.testing.assert_array_equal(own.predict(train[0]), plain.predict(train[0]))


def test_a_search_without_params_of_its_candidates_is_refused_after_its_own_fit(make_guard, train):
    class WithoutParams(GridSearchCV):
        def fit(self, X, y=None, **params):
            super().fit(X, y, **params)
            del self.cv_results_["params"]
            return self

    guard = make_guard()
    with pytest.raises(InputError, match=r"params of each candidate.*nothing was charged"):
        GuardedSearchCV(WithoutParams(TREE, DEPTHS, cv=2), guard, ask="choose").fit(*train)
    assert guard.queries_asked == 0


# ---- in the outer loops of others


def nested(guard, Cs=(0.01, 0.1, 1.0), **settings):
    inner = settings.pop("inner", GridSearchCV(MODEL, {"C": list(Cs)}, cv=2))
    return GuardedSearchCV(inner, guard, **{"ask": "choose", **settings})


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, r"choices=\[3\] \* folds"),
        ({"queries": 13}, r"BudgetError: .*at least 3 \* folds queries"),
        (
            {"inner": GridSearchCV(MODEL, {"C": [0.1, 1.0]}, scoring="roc_auc")},
            "scored by the guard's metric",
        ),
    ],
    ids=["no room", "no queries", "another metric"],
)
def test_a_guarded_search_refuses_in_an_outer_loop_what_it_refuses_by_itself(make_guard, train, made, words):
    room, queries = [3] * 4 if made else None, made.pop("queries", 60)
    guard = make_guard(queries=queries, tolerance=0.08, choices=room)
    refused = refuses(Refused, words, cross_val_score, nested(guard, **made), *train, cv=5)
    assert guard.history()["charged"].sum() == 0
    with pytest.raises(type(refused.error)):
        [nested(guard, Cs=[C, 2 * C, 3 * C], **made).fit(*train) for C in (2.0, 3.0)]
