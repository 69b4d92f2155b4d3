"""A callback for XGBoost that asks a guarded holdout during the training."""

from __future__ import annotations

import json
from typing import Any

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout_callbacks.boosters import BoosterModel, classes_of
from reusable_holdout_callbacks.rounds import Rounds
from reusable_holdout_callbacks.scores import XGBOOST, Score

__all__ = ["XGBoostCallback", "XGBoostModel"]

with of_extra("callbacks", "XGBoostCallback"):
    import xgboost


class XGBoostModel(BoosterModel):
    """A copy of an XGBoost booster as it was after one round."""

    def _loaded(self) -> Any:
        booster = xgboost.Booster()
        booster.load_model(bytearray(self.content))
        if _objective(booster)[0] == "multi:softmax":
            booster.set_param({"objective": "multi:softprob"})
        return booster

    def _outputs(self, booster: Any, X: Any) -> Any:
        return booster.predict(xgboost.DMatrix(X, enable_categorical=True))


class XGBoostCallback(Rounds, xgboost.callback.TrainingCallback):
    """Callback for XGBoost that asks a guarded holdout about the booster, with the round's validation score as prior.

    Pass it to ``xgboost.train(callbacks=[...])`` or ``XGBClassifier(callbacks=[...])``. Each round that is asked about
    takes one of the declared queries. If the same booster is asked about again with the same score, that is a replay
    and free.

    Parameters
    ----------
    guard : ReusableHoldout
        A guard that was made with features; its plan must not be for gates alone.
    prior : str or callable, optional
        Name of a validation score, such as "auc" or "valid-auc", or a function that computes the prior from
        `evals_log`. By default it is the score that measures the guard's metric, on the last evaluation set. Known
        scores are `error` and `merror` (for accuracy), `logloss`, `mlogloss`, `auc`, `aucpr` (nearly average
        precision), `rmse` and `mae`.
    every : int
        Number of rounds from one query to the next. The last round of the training is asked about, too.
    classes : array-like, optional
        The classes that the booster's labels 0, 1, ... stand for; by default the guard's classes.
    on_halt : {"raise", "stop"}
        "raise" ends the training with the exception Halted. "stop" ends it with a warning and keeps the model.

    Notes
    -----
    The attribute `answers` holds the answers, even after Halted was raised; see
    :class:`~reusable_holdout_callbacks.rounds.Rounds`.

    Early stopping still uses the validation score. Stopping on the guard's answers would spend the holdout. The last
    question is about the booster with all its trees, unless the list of callbacks has an
    ``EarlyStopping(save_best=True)`` before this one. ``xgboost.cv`` is refused, because it would ask in each fold. A
    training in several processes is refused, too, because each process would ask.

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

    library = XGBOOST
    _log: Any

    def before_training(self, model: Any) -> Any:
        """Check that the guard can be asked about this training, and forget the answers about an earlier one."""
        if not isinstance(model, xgboost.Booster):
            raise InputError(
                "xgboost.cv trains a model for each fold, and keeps none of them; nothing was asked; use the callback "
                "where the final model is trained: xgboost.train(callbacks=[XGBoostCallback(guard)])"
            )
        if xgboost.collective.get_world_size() > 1:
            raise InputError(
                "this training has several processes, and each would ask; nothing was asked; train without the "
                "callback, and then ask guard.evaluate(model, prior=...)"
            )
        self._begin()
        self._before, self._log = model.num_boosted_rounds(), {}
        self._frozen(model)  # raises now if booster and metric do not fit
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Ask the guard about the round that has just ended, if it is a round to ask about."""
        self._log = evals_log
        prior = self._prior(epoch)  # in every round, so that a missing score is reported after the first
        return self._is_due(epoch + 1) and self._ask(epoch + 1, self._frozen(model), prior)

    def after_training(self, model: Any) -> Any:
        """Ask the guard about the last round, unless it was asked about already."""
        number = model.num_boosted_rounds() - self._before
        if self._is_due(number, last=True):
            self._ask(number, self._frozen(model), self._prior(number - 1))
        return model

    def _prior(self, place: int) -> float:
        each = [(data, name, values) for data, found in self._log.items() for name, values in found.items()]
        return self._prior_of(
            self._log, [Score(data, name, float(values[place])) for data, name, values in each]
        )

    def _frozen(self, model: Any) -> XGBoostModel:
        if model.attributes():  # early stopping writes attributes, which are no part of the model
            model = model.copy()
            model.set_attr(**dict.fromkeys(model.attributes()))
        classes = classes_of(self.guard, *_objective(model), self.classes, XGBOOST)
        return XGBoostModel(bytes(model.save_raw("ubj")), model.num_features(), classes)


def _objective(booster: Any) -> tuple[str, int | None]:
    """Return a booster's objective and its number of classes; None for the number if it gives no probabilities."""
    learner = json.loads(booster.save_config())["learner"]
    name = learner["objective"]["name"]
    if name in {"binary:logistic", "reg:logistic"}:
        return name, 2
    if name in {"multi:softprob", "multi:softmax"}:
        return name, int(learner["learner_model_param"]["num_class"])
    return name, None
