"""A callback for LightGBM that asks a guarded holdout during the training."""

from __future__ import annotations

import re
from typing import Any

from reusable_holdout.errors import InputError, of_extra
from reusable_holdout_callbacks.boosters import BoosterModel, classes_of
from reusable_holdout_callbacks.rounds import Rounds
from reusable_holdout_callbacks.scores import LIGHTGBM, Score

__all__ = ["LightGBMCallback", "LightGBMModel"]

with of_extra("callbacks", "LightGBMCallback"):
    import lightgbm
    from lightgbm.callback import EarlyStopException

_AFTER_RECORDING, _BEFORE_STOPPING = 20, 30  # the attribute `order` of LightGBM's own callbacks


class LightGBMModel(BoosterModel):
    """A copy of a LightGBM booster as it was after one round."""

    def _loaded(self) -> Any:
        return lightgbm.Booster(model_str=self.content.decode())

    def _outputs(self, booster: Any, X: Any) -> Any:
        return booster.predict(X)


class LightGBMCallback(Rounds):
    """Callback for LightGBM that asks a guarded holdout about the booster, with the round's validation score as prior.

    Pass it to ``lightgbm.train(callbacks=[...])`` or ``LGBMClassifier.fit(callbacks=[...])``. Each round that is asked
    about takes one of the declared queries. If the same booster is asked about again with the same score, that is a
    replay and free.

    Parameters
    ----------
    guard : ReusableHoldout
        A guard that was made with features; its plan must not be for gates alone.
    prior : str or callable, optional
        Name of a validation score, such as "auc" or "valid_0-auc", or a function that computes the prior from
        `evaluation_result_list`. By default it is the score that measures the guard's metric, on the last evaluation
        set. Known scores are `binary_error` and `multi_error` (for accuracy), `binary_logloss`, `multi_logloss`,
        `auc`, `average_precision`, `rmse`, `l1` and `l2`.
    every : int
        Number of rounds from one query to the next. The last round that the training was told to run is asked about,
        too, if the training reaches it.
    classes : array-like, optional
        The classes that the booster's labels 0, 1, ... stand for; by default the guard's classes.
    on_halt : {"raise", "stop"}
        "raise" ends the training with the exception Halted. "stop" ends it with a warning, as early stopping does: the
        model is kept, and its `best_iteration` is the last round.

    Notes
    -----
    The attribute `answers` holds the answers, even after Halted was raised; see
    :class:`~reusable_holdout_callbacks.rounds.Rounds`.

    Early stopping still uses the validation score. Stopping on the guard's answers would spend the holdout. The round
    at which early stopping ends the training is asked about only if it is a multiple of `every`. ``lightgbm.cv`` is
    refused, because it would ask in each fold.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> from reusable_holdout import ReusableHoldout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 3))
    >>> y = (X[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    >>> guard = ReusableHoldout(X[4_000:], y[4_000:], tolerance=0.1, queries=10, seed=0)
    >>> train = lightgbm.Dataset(X[:2_000], y[:2_000])
    >>> valid = lightgbm.Dataset(X[2_000:4_000], y[2_000:4_000], reference=train)
    >>> asked = LightGBMCallback(guard, every=10)
    >>> wish = {"objective": "binary", "metric": "binary_error", "num_leaves": 4, "verbose": -1}
    >>> booster = lightgbm.train(wish, train, 25, valid_sets=[valid], callbacks=[asked])
    >>> [number for number, answer in asked.answers]
    [10, 20, 25]
    """

    library = LIGHTGBM
    order, before_iteration = (_AFTER_RECORDING + _BEFORE_STOPPING) // 2, False

    def __call__(self, env: Any) -> None:
        """Ask the guard about the round that has just ended, if it is a round to ask about."""
        if isinstance(env.model, lightgbm.CVBooster):
            raise InputError(
                "lightgbm.cv trains a model for each fold, and keeps none of them; nothing was asked; use the callback "
                "where the final model is trained: lightgbm.train(callbacks=[LightGBMCallback(guard)])"
            )
        if env.iteration == env.begin_iteration:
            self._begin(env.begin_iteration)
            self._frozen(env.model)  # raises now if booster and metric do not fit
        results = env.evaluation_result_list or []
        prior = self._prior_of(results, [Score(one[0], one[1], float(one[2])) for one in results])
        number = env.iteration + 1
        due = self._is_due(number, last=number == env.end_iteration)
        if due and self._ask(number, self._frozen(env.model), prior):
            raise EarlyStopException(env.iteration, results)

    def _frozen(self, booster: Any) -> LightGBMModel:
        text = re.sub(r"(?m)^\[num_threads: .*\n", "", booster.model_to_string(num_iteration=-1))
        classes = classes_of(self.guard, *_objective(text), self.classes, LIGHTGBM)
        return LightGBMModel(text.encode(), booster.num_feature(), classes)


def _objective(text: str) -> tuple[str, int | None]:
    """Return a booster's objective and its number of classes; None for the number if it gives no probabilities."""
    header = dict(re.findall(r"(?m)^(objective|num_class)=(.*)$", text.partition("\nTree=")[0]))
    name = header.get("objective", "").partition(" ")[0]
    if name in {"binary", "cross_entropy"}:
        return name, 2
    if name in {"multiclass", "multiclassova"}:
        return name, int(header["num_class"])
    return name, None
