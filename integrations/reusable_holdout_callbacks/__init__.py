"""Callbacks for training loops: a guarded holdout is asked once a round, with the validation score as the prior."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout_callbacks.of_keras import KerasCallback
    from reusable_holdout_callbacks.of_lightgbm import LightGBMCallback
    from reusable_holdout_callbacks.of_lightning import LightningCallback
    from reusable_holdout_callbacks.of_xgboost import XGBoostCallback
    from reusable_holdout_callbacks.rounds import RoundAnswer
else:  # each is made of its library's own class: who trains with one library loads no other
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".of_keras": ["KerasCallback"],
            ".of_lightgbm": ["LightGBMCallback"],
            ".of_lightning": ["LightningCallback"],
            ".of_xgboost": ["XGBoostCallback"],
            ".rounds": ["RoundAnswer"],
        },
    )

__all__ = ["KerasCallback", "LightGBMCallback", "LightningCallback", "RoundAnswer", "XGBoostCallback"]
