"""The two boosters behind one face: what a test of both trains with."""

import lightgbm
import xgboost
from reusable_holdout_callbacks import LightGBMCallback, XGBoostCallback

__all__ = ["BOOSTERS", "NAMES"]

_XGBOOST = {"two": "binary:logistic", "three": "multi:softprob", "value": "reg:squarederror"}
_LIGHTGBM = {"two": "binary", "three": "multiclass", "value": "regression"}
_OF_CLASSES = {"error": ("error", "merror"), "log_loss": ("logloss", "mlogloss"), "auc": ("auc",)}
_OF_VALUES = {"rmse": "rmse", "mae": "mae"}
_OWN = {"error": ("binary_error", "multi_error"), "log_loss": ("binary_logloss", "multi_logloss")}


def _names(of_classes, of_values):
    """The library's names of scores, by the guard's name and by the kind of labels."""
    found = {name: dict(zip(("two", "three"), own, strict=False)) for name, own in of_classes.items()}
    return found | {name: {"value": own} for name, own in of_values.items()}


NAMES = {
    "xgboost": _names({**_OF_CLASSES, "average_precision": ("aucpr",)}, _OF_VALUES),
    "lightgbm": _names(
        {**_OF_CLASSES, **_OWN, "average_precision": ("average_precision",)},
        {"rmse": "rmse", "mae": "l1", "mse": "l2"},
    ),
}


def _xgboost(rows, kind, callbacks, score, *, rounds=6, valid="valid", early=None, **wish):
    y, y_valid, _ = getattr(rows, kind)
    wish = {"objective": _XGBOOST[kind], "eval_metric": score, "max_depth": 2, "nthread": 1, **wish}
    if kind == "three":
        wish.setdefault("num_class", 3)
    evals = [(xgboost.DMatrix(rows.X_valid, y_valid), valid)] if valid else None
    return xgboost.train(
        {key: value for key, value in wish.items() if value is not None},
        xgboost.DMatrix(rows.X, y),
        rounds,
        evals=evals,
        callbacks=callbacks,
        early_stopping_rounds=early,
        verbose_eval=False,
    )


def _lightgbm(rows, kind, callbacks, score, *, rounds=6, valid="valid", early=None, **wish):
    y, y_valid, _ = getattr(rows, kind)
    wish = {"objective": _LIGHTGBM[kind], "num_leaves": 4, "num_threads": 1, "verbose": -1, **wish}
    wish["metric"] = score or "None"
    if kind == "three":
        wish.setdefault("num_class", 3)
    train = lightgbm.Dataset(rows.X, y)
    early = [lightgbm.early_stopping(early, verbose=False)] if early else []
    return lightgbm.train(
        wish,
        train,
        rounds,
        valid_sets=[lightgbm.Dataset(rows.X_valid, y_valid, reference=train)] if valid else None,
        valid_names=[valid] if valid else None,
        callbacks=[*callbacks, *early],
    )


BOOSTERS = {"xgboost": (XGBoostCallback, _xgboost), "lightgbm": (LightGBMCallback, _lightgbm)}
