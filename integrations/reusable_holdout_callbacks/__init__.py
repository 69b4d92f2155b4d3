"""Callbacks for LightGBM and XGBoost that ask a guarded holdout about the booster after some rounds of its training.

The validation score of the round is the prior.
"""

from reusable_holdout_callbacks.of_lightgbm import LightGBMCallback
from reusable_holdout_callbacks.of_xgboost import XGBoostCallback
from reusable_holdout_callbacks.rounds import RoundAnswer

__all__ = ["LightGBMCallback", "RoundAnswer", "XGBoostCallback"]
