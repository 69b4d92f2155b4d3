"""A search that asks one question: which of its candidates is best by the holdout."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from cases import for_each
from long_tests import GUARD
from reusable_holdout_sklearn import GuardedSearchCV, prior_scorer
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import BudgetError, Halted, InputError, ModelError
from reusable_holdout.metrics import mae

DEPTHS = {"max_depth": [1, 2, 3, 5, 8, 12]}


def trees(model=None, **settings):
    return GridSearchCV(model or DecisionTreeClassifier(random_state=0), DEPTHS, cv=3, **settings)


class Counting(DecisionTreeClassifier):
    fits = 0

    def fit(self, X, y, sample_weight=None, check_input=True):
        type(self).fits += 1
        return super().fit(X, y, sample_weight, check_input)


def fits_of(search, train, error):
    """How many models were fitted before it was refused."""
    Counting.fits = 0
    with pytest.raises(error):
        search.fit(*train)
    return Counting.fits


# ---- what is asked, and what is told


def test_it_is_one_question_that_takes_a_query_for_each_candidate_and_no_charge(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard).fit(*train)
    (row,) = guard.history().to_dict("records")
    assert (row["kind"], row["name"], row["charged"]) == ("choose", "best of 6", False)
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert guard.charges_left == guard.plan.charges
    assert row["prior"] == search.cv_results_["mean_test_score"][search.best_index_]
    assert search.best_answer_.nats == row["nats"] > 0
    assert verify(guard.ledger).sound


def test_the_winner_is_the_best_on_the_holdout_whatever_cross_validation_says(make_guard, data, train):
    """Trained on labels that are wrong, the model that learnt least is the best: the priors' last."""
    X, y = data
    three = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 5, 12]}, cv=3)
    wrong = np.where(np.arange(2_000) % 3 == 0, train[1], 1 - train[1])
    for labels in (train[1], wrong):
        guard = make_guard()
        search = GuardedSearchCV(three, guard).fit(train[0], labels)
        models = [clone(search.search_.estimator).set_params(**one) for one in search.cv_results_["params"]]
        scores = [model.fit(train[0], labels).score(X[2_000:], y[2_000:]) for model in models]
        best = int(np.argmax(scores))
        assert sorted(scores)[-1] - sorted(scores)[-2] > 0.002  # more than the noise of a choice
        assert search.best_index_ == best
        assert search.best_params_ == search.cv_results_["params"][best]
        assert search.best_answer_.low < scores[best] < search.best_answer_.high
        assert search.best_score_ == search.best_answer_.value
        np.testing.assert_array_equal(search.predict(X), models[best].predict(X))
    assert search.best_index_ != np.argmax(search.cv_results_["mean_test_score"])


def test_the_table_has_answers_for_the_one_that_was_taken_alone(make_guard, train):
    search = GuardedSearchCV(trees(), make_guard()).fit(*train)
    results, best = search.guard_results_, search.best_index_
    assert results["candidate"].tolist() == list(range(6))
    assert results["cv_mean"].tolist() == search.cv_results_["mean_test_score"].tolist()
    others = results.drop(index=best)
    assert others[["answer", "low", "high", "query"]].isna().all(axis=None)
    assert not results[["charged", "replayed"]].any(axis=None)
    taken, answer = results.loc[best], search.best_answer_
    assert (taken["answer"], taken["low"], taken["high"]) == (answer.value, answer.low, answer.high)
    assert taken["query"] == answer.query == 1


def test_of_losses_the_smallest_is_chosen(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    y = np.clip(X[:, 0] + rng.normal(size=3_000), -5, 5)
    wish = {"metric": mae(lower=-5, upper=5), "charges": 2, "choices": [2], "queries": 20, "seed": 0}
    guard = ReusableHoldout(X[1_000:], y[1_000:], **wish)
    inner = GridSearchCV(Ridge(), {"alpha": [1e6, 1.0]}, scoring=prior_scorer(guard))
    search = GuardedSearchCV(inner, guard).fit(X[:1_000], y[:1_000])
    assert search.best_params_ == {"alpha": 1.0}
    assert search.best_score_ == -search.best_answer_.value < 0


# ---- again, and elsewhere


def test_the_same_search_again_is_a_replay_and_free_even_without_room_for_another(make_guard, train):
    guard = make_guard(tolerance=None, charges=3, choices=[6])
    first = GuardedSearchCV(trees(), guard).fit(*train)
    assert not guard.price("choose", candidates=6).allowed
    again = GuardedSearchCV(trees(n_jobs=2), guard).fit(*train)
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert again.best_answer_ == first.best_answer_._replace(replayed=True)
    assert again.guard_results_["replayed"].tolist() == [i == first.best_index_ for i in range(6)]
    assert again.best_index_ == first.best_index_


def test_a_replay_is_free_after_a_halt_and_anything_else_halts_before_it_is_refitted(make_guard, train):
    X, y = train
    guard = make_guard(queries=6, tolerance=0.2)
    Counting.fits = 0  # an attribute of the class is a part of the model
    first = GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard).fit(X, y)
    assert guard.halt_reason == "queries"
    Counting.fits = 0
    again = GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard).fit(X, y)
    assert again.best_answer_ == first.best_answer_._replace(replayed=True)
    Counting.fits = 0
    other = GuardedSearchCV(trees(Counting(random_state=0), refit=False), guard)
    with pytest.raises(Halted) as caught:
        other.fit(X[:1_000], y[:1_000])  # other priors: it was not asked before
    assert Counting.fits == 3 * 6
    assert caught.value.reason == "queries"
    assert len(other.guard_results_) == 0
    assert not hasattr(other, "best_estimator_")
    assert len(other.search_.cv_results_["params"]) == 6


def test_after_a_final_a_search_halts(make_guard, data, train):
    guard = make_guard()
    guard.final(LogisticRegression().fit(*train))
    with pytest.raises(Halted) as caught:
        GuardedSearchCV(trees(), guard).fit(*train)
    assert caught.value.reason == "final"
    assert guard.answered == 1


@pytest.mark.long(*GUARD, "integrations/reusable_holdout_sklearn")
def test_jobs_and_backends_choose_the_same(make_guard, train):
    X, y = train[0][:400], train[1][:400]
    grid = GridSearchCV(RandomForestClassifier(5, random_state=0), {"max_depth": [2, 4, 6]}, cv=2)
    histories, questions = [], []
    for backend, jobs in [("loky", 1), ("loky", 2), ("threading", 2), ("multiprocessing", 2)]:
        guard = make_guard()
        with joblib.parallel_config(backend):
            GuardedSearchCV(clone(grid), guard, n_jobs=jobs).fit(X, y)
        histories.append(guard.history().drop(columns="asked_at"))
        questions.append([row.digest for row in guard._ledger.rows()])
    for history, asked in zip(histories[1:], questions[1:], strict=True):
        pd.testing.assert_frame_equal(history, histories[0])
        assert asked == questions[0]


def test_it_is_the_question_that_guard_choose_asks(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(), guard).fit(*train)
    models = [
        DecisionTreeClassifier(random_state=0, **one).fit(*train) for one in search.cv_results_["params"]
    ]
    choice = guard.choose(models, search.cv_results_["mean_test_score"].tolist())
    assert choice.answer.replayed
    assert choice.index == search.best_index_
    assert choice.answer.value == search.best_answer_.value


@for_each("policy", ["guess-and-check", "ladder", "gate", "parameter-free-ladder"])
def test_a_guard_of_any_policy_can_choose(data, train, policy):
    """Also one that measures its own questions in another way, and one that takes no prior."""
    X, y = data
    wish = {"queries": 60, "charges": 2, "choices": [6], "policy": policy, "seed": 0, "noise_scale": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parameter-free ladder warns of itself
        guard = ReusableHoldout(X[2_000:], y[2_000:], **wish)
    plain = ReusableHoldout(X[2_000:], y[2_000:], **wish | {"policy": "thresholdout"})
    found, expected = (GuardedSearchCV(trees(), one).fit(*train) for one in (guard, plain))
    assert found.best_index_ == expected.best_index_
    assert found.best_answer_.kind == "choose"


# ---- candidates that fail


class FailsOnTheHoldout(DecisionTreeClassifier):
    """Fails where there are 4,000 rows, if it is no deeper than that."""

    def __init__(self, *, max_depth=None, random_state=None, until=99):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.until = until

    def predict(self, X, check_input=True):
        if len(X) == 4_000 and self.max_depth <= self.until:
            raise ValueError("private words")
        return super().predict(X, check_input)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_candidate_that_fails_on_the_holdout_fails_the_choice_which_names_the_best_of_the_others(
    make_guard, train, jobs
):
    guard = make_guard()
    search = GuardedSearchCV(trees(FailsOnTheHoldout(random_state=0, until=3), n_jobs=jobs), guard)
    with pytest.raises(ModelError, match="is number 4"):  # the depth of 5
        search.fit(*train)
    assert guard.history()["told"].str.endswith("failed").all()
    assert guard.history()["charged"].tolist() == [False]
    assert not hasattr(search, "best_answer_")


def test_if_all_fail_that_is_said_and_priced(make_guard, train):
    guard = make_guard()
    search = GuardedSearchCV(trees(FailsOnTheHoldout(random_state=0)), guard)
    for _ in range(2):  # it is replayed, too
        with pytest.raises(ModelError, match="withheld") as caught:
            search.fit(*train)
        assert "private" not in str(caught.value)
    assert (guard.answered, guard.queries_asked) == (1, 6)
    assert guard.charges_left == guard.plan.charges
    assert guard.history()["nats"][0] > 0
    assert not hasattr(search, "best_answer_")


class FailsToFit(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None, check_input=True):
        if self.max_depth == 3:
            raise ValueError("no")
        return super().fit(X, y, sample_weight, check_input)


def test_a_candidate_without_a_score_is_not_asked_about(make_guard, train):
    guard = make_guard()
    with pytest.warns((FitFailedWarning, UserWarning)):
        search = GuardedSearchCV(trees(FailsToFit(random_state=0)), guard).fit(*train)
    assert search.guard_results_["candidate"].tolist() == [0, 1, 3, 4, 5]
    assert guard.queries_asked == 5


# ---- refused


def test_a_choice_that_the_plan_does_not_allow_is_refused_before_anything_is_fitted(make_guard, train):
    none, few, short = (
        make_guard(tolerance=None, charges=3),
        make_guard(tolerance=None, charges=3, choices=[2]),
        make_guard(queries=5, tolerance=0.2),
    )
    model = Counting(random_state=0)
    grid, random = trees(model), RandomizedSearchCV(model, DEPTHS, n_iter=5, random_state=0, cv=3)
    for guard, inner, error in [
        (none, grid, InputError),
        (none, random, InputError),
        (few, grid, InputError),
        (few, random, InputError),
        (short, grid, BudgetError),
    ]:
        assert not guard.price("choose", candidates=5 if inner is random else 6).allowed
        assert fits_of(GuardedSearchCV(inner, guard), train, error) == 0
        assert guard.answered == 0
    search = GuardedSearchCV(trees(model, refit=False), few, candidates=2).fit(*train)
    assert few.queries_asked == len(search.guard_results_) == 2


def test_where_the_number_of_candidates_is_known_late_they_are_not_refitted(make_guard, train):
    guard = make_guard(tolerance=None, charges=3, choices=[2])
    search = GuardedSearchCV(Bare(Counting(random_state=0), [1, 2, 3, 5, 8, 12]), guard, prior="score")
    assert fits_of(search, train, InputError) == 6 * 3
    assert guard.answered == 0


def test_the_ways_to_ask_are_two(make_guard, train):
    with pytest.raises(InputError, match='"choose" or "evaluate"'):
        GuardedSearchCV(trees(), make_guard(), ask="reveal").fit(*train)


# ---- searches that are not scikit-learn's


class Bare(BaseEstimator):
    """A search of one's own, with no more than is asked for."""

    def __init__(self, estimator, depths):
        self.estimator = estimator
        self.depths = depths

    def fit(self, X, y):
        self.cv_results_ = {
            "params": [{"max_depth": depth} for depth in self.depths],
            "mean_test_score": [
                cross_val_score(clone(self.estimator).set_params(max_depth=depth), X, y, cv=3).mean()
                for depth in self.depths
            ],
        }
        return self


@for_each("ask", ["choose", "evaluate"])
def test_a_search_without_ranks_is_ranked_by_its_means(make_guard, train, ask):
    bare = Bare(DecisionTreeClassifier(random_state=0), DEPTHS["max_depth"])
    guards = make_guard(), make_guard()
    own, plain = (
        GuardedSearchCV(inner, guard, ask=ask, candidates=3, prior="score").fit(*train)
        for inner, guard in zip((bare, trees()), guards, strict=True)
    )
    pd.testing.assert_frame_equal(own.guard_results_, plain.guard_results_)
    assert own.best_params_ == plain.best_params_
    np.testing.assert_array_equal(own.predict(train[0]), plain.predict(train[0]))
