"""Training loops that ask after each of their rounds, with a callback of their own kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.stand_ins import KerasStandIn, LightningStandIn, Trainer, callback_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.loops import Stage

__all__ = ["TRAINING"]


def _rounds(callback: Any) -> list[float]:
    assert callback.answers
    return [one.answer.value for one in callback.answers]


def _halves(stage: Stage) -> tuple[Any, Any, Any, Any]:
    half = len(stage.y) // 2
    return stage.X[:half], stage.y[:half], stage.X[half:], stage.y[half:]


def _xgboost_train(stage: Stage) -> Any:
    import xgboost
    from reusable_holdout_callbacks import XGBoostCallback

    X, y, X_valid, y_valid = _halves(stage)
    asked = XGBoostCallback(stage.guard)
    xgboost.train(
        {"objective": "binary:logistic", "eval_metric": "error", "max_depth": 2, "nthread": 1},
        xgboost.DMatrix(X, y),
        6,
        evals=[(xgboost.DMatrix(X_valid, y_valid), "valid")],
        callbacks=[asked],
        verbose_eval=False,
    )
    return _rounds(asked)


def _xgboost_fit(stage: Stage) -> Any:
    from reusable_holdout_callbacks import XGBoostCallback
    from xgboost import XGBClassifier

    X, y, X_valid, y_valid = _halves(stage)
    asked = XGBoostCallback(stage.guard)
    model = XGBClassifier(n_estimators=6, max_depth=2, n_jobs=1, eval_metric="error", callbacks=[asked])
    model.fit(X, y, eval_set=[(X_valid, y_valid)], verbose=False)
    return _rounds(asked)


def _lightgbm_train(stage: Stage) -> Any:
    import lightgbm
    from reusable_holdout_callbacks import LightGBMCallback

    X, y, X_valid, y_valid = _halves(stage)
    asked, train = LightGBMCallback(stage.guard), lightgbm.Dataset(X, y)
    lightgbm.train(
        {"objective": "binary", "metric": "binary_error", "num_leaves": 4, "num_threads": 1, "verbose": -1},
        train,
        6,
        valid_sets=[lightgbm.Dataset(X_valid, y_valid, reference=train)],
        callbacks=[asked],
    )
    return _rounds(asked)


def _lightgbm_fit(stage: Stage) -> Any:
    from lightgbm import LGBMClassifier
    from reusable_holdout_callbacks import LightGBMCallback

    X, y, X_valid, y_valid = _halves(stage)
    asked = LightGBMCallback(stage.guard)
    model = LGBMClassifier(n_estimators=6, num_leaves=4, n_jobs=1, verbose=-1)
    model.fit(X, y, eval_set=[(X_valid, y_valid)], eval_metric="binary_error", callbacks=[asked])
    return _rounds(asked)


def _lightning_loop(stage: Stage) -> Any:
    X, y, X_valid, y_valid = _halves(stage)
    asked = callback_class("LightningCallback")(
        stage.guard, lambda module, rows: (module.forward(rows) > 0.5).astype(int), prior="val_acc"
    )
    Trainer([asked], max_epochs=6).fit(LightningStandIn(X.shape[1]), (X, y), (X_valid, y_valid))
    return _rounds(asked)


def _keras_loop(stage: Stage) -> Any:
    X, y, X_valid, y_valid = _halves(stage)
    asked = callback_class("KerasCallback")(
        stage.guard, lambda model, rows: (model(rows)[:, 0] > 0.5).astype(int), prior="val_accuracy"
    )
    model = KerasStandIn(X.shape[1])
    model.fit(X, y, validation_data=(X_valid, y_valid), epochs=6, callbacks=[asked])
    return _rounds(asked)


TRAINING: dict[str, Callable[[Stage], Any]] = {
    "xgboost.train with XGBoostCallback": _xgboost_train,
    "XGBClassifier(callbacks=)": _xgboost_fit,
    "lightgbm.train with LightGBMCallback": _lightgbm_train,
    "LGBMClassifier.fit(callbacks=)": _lightgbm_fit,
    "Lightning-style loop": _lightning_loop,
    "Keras-style loop": _keras_loop,
}
