"""Cross-validation with one question about the refitted model."""

import numpy as np
import pytest
import sklearn
from cases import refuses
from integrations.sklearn.models import FailsOnTheHoldout
from reusable_holdout_sklearn import guarded_cross_validate
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_validate

from reusable_holdout.errors import Halted, InputError, ModelError

MODEL = LogisticRegression()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_it_is_cross_validate_and_one_question(make_guard, train, n_jobs):
    guard = make_guard()
    wish = {"cv": 4, "n_jobs": n_jobs, "return_train_score": True, "return_estimator": True}
    scores = guarded_cross_validate(MODEL, *train, guard, **wish)
    plain = cross_validate(MODEL, *train, cv=4, return_train_score=True)
    for name in plain.keys() - {"fit_time", "score_time"}:
        np.testing.assert_allclose(scores[name], plain[name])
    assert scores.keys() == plain.keys() | {"test_prior", "guard_answer", "guard_estimator", "estimator"}
    assert scores["guard_answer"].prior == pytest.approx(plain["test_score"].mean())
    assert guard.history()["value"].tolist() == [scores["guard_answer"].value]
    np.testing.assert_array_equal(scores["guard_estimator"].coef_, LogisticRegression().fit(*train).coef_)


@pytest.mark.parametrize(
    ("scoring", "keys"),
    [
        ("roc_auc", {"test_score"}),
        (["roc_auc", "f1"], {"test_roc_auc", "test_f1"}),
        ({"auc": "roc_auc"}, {"test_auc"}),
        (lambda model, X, y: 0.5, {"test_score"}),
    ],
)
def test_other_metrics_are_measured_besides(make_guard, train, scoring, keys):
    scores = guarded_cross_validate(MODEL, *train, make_guard(metric="brier", tolerance=0.2), scoring=scoring)
    assert {name for name in scores if name.startswith("test")} == keys | {"test_prior"}
    assert scores["guard_answer"].prior == pytest.approx(
        scores["test_prior"].mean(), rel=0, abs=5e-10
    )  # nine digits of a loss
    assert scores["guard_answer"].prior > 0


def test_asked_again_it_is_a_replay_and_another_model_halts_before_its_refit(make_guard, train):
    class Counting(LogisticRegression):
        fits = 0

        def fit(self, X, y, **settings):
            type(self).fits += 1
            return super().fit(X, y, **settings)

    guard = make_guard(queries=1)
    first, again = (guarded_cross_validate(MODEL, *train, guard) for _ in range(2))
    assert again["guard_answer"] == first["guard_answer"]._replace(replayed=True)
    caught = refuses(Halted, "", guarded_cross_validate, Counting(C=1e-4), *train, guard, cv=3)
    assert Counting.fits == 3
    assert len(caught.scores["test_score"]) == 3
    # the same prior, another model
    refuses(Halted, "", guarded_cross_validate, LogisticRegression(tol=1e-3), *train, guard)


def test_a_model_that_fails_on_the_holdout_is_charged(make_guard, train):
    guard = make_guard()
    caught = refuses(ModelError, "", guarded_cross_validate, FailsOnTheHoldout(), *train, guard)
    assert "private words" not in str(caught)
    assert f"(charges left: {guard.charges_left}, queries left: {guard.queries_left})" in str(caught)
    assert guard.history()["charged"].tolist() == [True]


def test_a_fold_without_a_score_or_a_taken_name_is_refused(make_guard, train):
    guard, (X, y) = make_guard(), (train[0][:90], np.repeat([0, 0, 1], 30))
    with pytest.warns(FitFailedWarning), pytest.raises(InputError, match="every fold must have a score"):
        guarded_cross_validate(MODEL, X, y, guard, cv=KFold(3))  # one fold has one class alone
    with pytest.raises(InputError, match="rename it"):
        guarded_cross_validate(MODEL, *train, guard, scoring={"prior": "accuracy"})
    assert guard.queries_asked == 0


@pytest.mark.parametrize("routing", [False, True])
def test_weights_and_groups_reach_the_fits(make_guard, train, routing):
    X, y = train
    guard = make_guard(tolerance=None, charges=5, threshold=0.9, noise=1e-6)
    weights, groups = np.where(y == 1, 100.0, 1.0), np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=routing):
        wish, model = {"params": {"sample_weight": weights}, "groups": groups}, LogisticRegression()
        if routing:
            wish = {"params": {"sample_weight": weights, "groups": groups}}
            model.set_fit_request(sample_weight=True)
        scores = guarded_cross_validate(model, X, y, guard, cv=GroupKFold(3), return_estimator=True, **wish)
    direct = LogisticRegression().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(scores["guard_estimator"].coef_, direct.coef_)
    assert len(scores["test_score"]) == 3
