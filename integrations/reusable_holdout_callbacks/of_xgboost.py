"""A callback of XGBoost's."""

from __future__ import annotations

import json
from typing import Any

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout_callbacks.boosters import BoosterModel, BoosterRounds, classes_of
from reusable_holdout_callbacks.scores import XGBOOST_SCORES, Score, prior_of

__all__ = ["XGBoostCallback", "XGBoostModel"]

with of_extra("callbacks", "XGBoostCallback"):
    import xgboost


class XGBoostModel(BoosterModel):
    """An XGBoost booster as it was after one round."""

    def _loaded(self) -> Any:
        booster = xgboost.Booster()
        booster.load_model(bytearray(self.content))
        if _objective(booster)[0] == "multi:softmax":
            booster.set_param({"objective": "multi:softprob"})
        return booster

    def _outputs(self, booster: Any, X: Any) -> Any:
        return booster.predict(xgboost.DMatrix(X, enable_categorical=True))


class XGBoostCallback(BoosterRounds, xgboost.callback.TrainingCallback):
    """Callback of XGBoost that asks a guarded holdout once a round, with the validation score as the prior.

    For ``xgboost.train(callbacks=[...])`` and ``XGBClassifier(callbacks=[...])``. Each round that is asked about takes
    one of the declared queries; the same booster with the same score is a replay, and free.

    Parameters
    ----------
    guard : ReusableHoldout
        With features; no gate.
    prior : str or callable, optional
        Name of a validation score, such as "auc" or "valid-auc", or a function of `evals_log` that gives the prior. By
        default what is the guard's metric on the last evaluation set: `error` and `merror` for accuracy, `logloss`,
        `auc`, `aucpr` (nearly average precision), `rmse`, `mae`. A ladder takes none.
    every : int
        Rounds from one query to the next; the last round of the training is asked about, too.
    classes : array-like, optional
        What the labels 0, 1, ... stand for; the guard's classes by default.
    on_halt : {"raise", "stop"}
        Whether a halt is raised out of the training, or stops it with a warning; then the model is kept.

    Notes
    -----
    `answers` has what was answered, also after a halt, which is raised as `Halted`: see
    :class:`~reusable_holdout_callbacks.rounds.Rounds`.

    Early stopping goes on the validation score, as before: who stops on the guard's answers spends the holdout. The
    last round is asked about with all its trees, unless an ``EarlyStopping(save_best=True)`` stands before this one.
    Refused are ``xgboost.cv``, which would ask in each fold, and trainings of several processes.

    Examples
    --------
    >>> import numpy as np, xgboost
    >>> from reusable_holdout import ReusableHoldout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[4_000:], y[4_000:], tolerance=0.1, queries=10, seed=0)
    >>> train, valid = xgboost.DMatrix(X[:2_000], y[:2_000]), xgboost.DMatrix(X[2_000:4_000], y[2_000:4_000])
    >>> asked = XGBoostCallback(guard, every=10)
    >>> booster = xgboost.train({"objective": "binary:logistic", "eval_metric": "error", "max_depth": 2}, train, 25,
    ...                         evals=[(valid, "valid")], verbose_eval=False, callbacks=[asked])
    >>> [number for number, answer in asked.answers]
    [10, 20, 25]
    """

    _log: Any

    def before_training(self, model: Any) -> Any:
        """Begin, if the training can be asked about."""
        if not isinstance(model, xgboost.Booster):
            raise InputError(
                "xgboost.cv trains a model for each fold, and none that is kept; nothing was asked; ask about the one "
                "that is trained on all rows: xgboost.train(callbacks=[XGBoostCallback(guard)])"
            )
        if xgboost.collective.get_world_size() > 1:
            raise InputError(
                "each of the processes of this training would ask; nothing was asked; train without the callback, and "
                "ask guard.evaluate(model, prior=...)"
            )
        self._begin()
        self._before, self._log = model.num_boosted_rounds(), {}
        self._classes(model)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Ask if the round is due."""
        self._log = evals_log
        prior = self._prior(epoch)  # of every round, so that what is missing is told after the first
        return self._is_due(epoch + 1) and self._ask(epoch + 1, self._frozen(model), prior)

    def after_training(self, model: Any) -> Any:
        """Ask about the last round."""
        number = model.num_boosted_rounds() - self._before
        if self._is_due(number, last=True):
            self._ask(number, self._frozen(model), self._prior(number - 1))
        return model

    def _prior(self, place: int) -> float | None:
        if not self.guard.takes_priors:
            return None
        if callable(self.prior):
            return float(self.prior(self._log))
        scores = [
            Score(data, name, float(values[place]))
            for data, found in self._log.items()
            for name, values in found.items()
        ]
        sets = 'evals=[(dvalid, "valid")] (of fit: eval_set=[(X_valid, y_valid)])'
        return prior_of(scores, self.guard.metric, self.prior, known=XGBOOST_SCORES, sets=sets)

    def _classes(self, model: Any) -> Any:
        objective, count = _objective(model)
        advice = 'objective="binary:logistic" or "multi:softprob"'
        return classes_of(self.guard, objective, count, self.classes, advice=advice)

    def _frozen(self, model: Any) -> XGBoostModel:
        if model.attributes():  # what early stopping notes is no part of the model
            model = model.copy()
            model.set_attr(**dict.fromkeys(model.attributes()))
        content = bytes(model.save_raw("ubj"))
        return XGBoostModel(content, model.num_features(), self._classes(model))


def _objective(booster: Any) -> tuple[str, int | None]:
    """Objective of a booster, and how many classes it tells probabilities of."""
    learner = json.loads(booster.save_config())["learner"]
    name = learner["objective"]["name"]
    if name in {"binary:logistic", "reg:logistic"}:
        return name, 2
    if name in {"multi:softprob", "multi:softmax"}:
        return name, int(learner["learner_model_param"]["num_class"])
    return name, None
