"""Callbacks for boosters: a guarded holdout is asked once a round, with the validation score as the prior."""

from reusable_holdout_callbacks.of_lightgbm import LightGBMCallback
from reusable_holdout_callbacks.of_xgboost import XGBoostCallback
from reusable_holdout_callbacks.rounds import RoundAnswer

__all__ = ["LightGBMCallback", "RoundAnswer", "XGBoostCallback"]
