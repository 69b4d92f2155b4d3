"""A callback of Keras's."""

from __future__ import annotations

import json
from typing import Any

from reusable_holdout_callbacks.bases import base_class
from reusable_holdout_callbacks.networks import NetworkRounds, Predicted

__all__ = ["KerasCallback", "KerasModel"]

_NEEDS = "keras: pip install keras, and a backend such as jax"
_Base: Any = base_class("Callback", ("keras.callbacks", "tf_keras.callbacks"), needs=_NEEDS)


class KerasModel(Predicted):
    """A Keras model as it was after one epoch.

    Its architecture and its weights are what it is: a saved file tells the time of saving, too.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {
            "config": json.dumps(json.loads(self.model.to_json())["config"]),  # not how it is trained
            "weights": self.model.get_weights(),
            "kinds": [type(self.model), *map(type, self.model.layers)],
            "function": self.function,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        kinds = {kind.__name__: kind for kind in state["kinds"]}
        self.model = state["kinds"][0].from_config(json.loads(state["config"]), custom_objects=kinds)
        self.model.set_weights(state["weights"])
        self.function = state["function"]


class KerasCallback(NetworkRounds, _Base):  # type: ignore[misc]  # what a library has, if it is installed
    """Callback of Keras that asks a guarded holdout once an epoch, with the validation score as the prior.

    For ``model.fit(callbacks=[...])``, and for loops of one's own that call `set_model`, `on_train_begin` and
    `on_epoch_end`. Each epoch that is asked about takes one of the declared queries; the same weights in the same
    architecture with the same score are a replay, and free.

    Parameters
    ----------
    guard : ReusableHoldout
        With features; no gate.
    predict : callable
        ``predict(model, X)`` gives what the guard's metric needs of the rows X: labels, probabilities, scores or
        values. X is what the guard was made with.
    prior : str or callable, optional
        Name of a validation score in `logs`, in the unit of the guard's metric, such as "val_accuracy", or a function
        of `logs`. Needed unless the guard is a ladder.
    every : int
        Epochs from one query to the next; the last one is asked about, too. Of a training that EarlyStopping ends it is
        known here if that stands before this callback.
    on_halt : {"raise", "stop"}
        Whether a halt is raised out of the training, or sets ``model.stop_training`` with a warning.

    Notes
    -----
    `answers` has what was answered, also after a halt, which is raised as `Halted`: see
    :class:`~reusable_holdout_callbacks.rounds.Rounds`.

    Keras numbers the layers of a process: a training that is run again there is the same question after
    ``keras.utils.clear_session()``. A model whose `get_config` fails is a new question each time.
    """

    example = 'prior="val_accuracy", with metrics=["accuracy"] and validation_data'

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin."""
        self._begin()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Ask if the epoch is due."""
        number, model = epoch + 1, self.model
        prior = self._logged(logs or {})
        last = number == (self.params or {}).get("epochs") or bool(model.stop_training)
        if self._is_due(number, last=last) and self._ask(number, KerasModel(model, self.predict), prior):
            model.stop_training = True
