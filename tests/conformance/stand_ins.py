"""Stand-ins for Lightning and Keras, which are too large for a test: what a callback sees of their training loops.

Written after lightning 2.6.6 (`trainer/call.py`, `loops/fit_loop.py`, `callbacks/callback.py`) and keras 3.15
(`callbacks/callback.py`, `trainers/trainer.py`): the same hooks in the same order, with the same attributes. The models
are logistic regressions in NumPy.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types
from typing import Any

import numpy as np

__all__ = ["KerasStandIn", "LightningStandIn", "Trainer", "callback_class"]


class _Logistic:
    """A model that a step of gradient descent improves."""

    def __init__(self, columns: int) -> None:
        self.weights = np.zeros(columns)

    def step(self, X: Any, y: Any) -> None:
        self.weights += X.T @ (y - self(X)) / len(y)

    def __call__(self, X: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-(np.asarray(X) @ self.weights)))


# ---- Lightning


class LightningHooks:
    """As `lightning.pytorch.Callback`: hooks that do nothing."""

    @property
    def state_key(self) -> str:
        return self.__class__.__qualname__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_") or name in {"setup", "teardown"}:
            return lambda *_: None
        raise AttributeError(name)


class LightningStandIn:
    """As a LightningModule: it drops out weights while it trains, and is pickled without its trainer."""

    def __init__(self, columns: int) -> None:
        self.net, self.training, self._trainer = _Logistic(columns), True, None

    def modules(self) -> list[Any]:
        return [self]

    def eval(self) -> None:
        self.training = False

    def forward(self, X: Any) -> Any:
        return self.net(X) * (0.0 if self.training else 1.0)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_trainer": None}


class Trainer:
    """As `lightning.pytorch.Trainer`, on one process."""

    def __init__(
        self, callbacks: Any, *, max_epochs: int, check_val_every_n_epoch: int = 1, **changes: Any
    ) -> None:
        self.callbacks, self.max_epochs, self.each = callbacks, max_epochs, check_val_every_n_epoch
        self.world_size, self.fast_dev_run, self.enable_validation = 1, False, True
        self.should_stop = self.sanity_checking = False
        self.current_epoch, self.callback_metrics = 0, {}
        self.state = types.SimpleNamespace(fn="fit")
        self.__dict__.update(changes)

    def _call(self, hook: str, *more: Any) -> None:
        for callback in self.callbacks:
            assert callback.state_key
            getattr(callback, hook)(self, self.module, *more)

    def fit(self, module: Any, train: Any, valid: Any) -> None:
        self.module, module._trainer = module, self
        try:
            self._run(module, train, valid)
        except BaseException as exception:
            self._call("on_exception", exception)
            raise

    def _run(self, module: Any, train: Any, valid: Any) -> None:
        self._call("setup", "fit")
        self._call("on_fit_start")
        self.sanity_checking = True
        self._call("on_validation_end")
        self.sanity_checking = False
        self._call("on_train_start")
        while self.current_epoch < self.max_epochs and not self.should_stop:
            module.net.step(*train)
            if self.enable_validation and (self.current_epoch + 1) % self.each == 0:
                X, y = valid
                self.callback_metrics["val_acc"] = np.mean((module.net(X) > 0.5) == y)
                self._call("on_validation_end")
            self._call("on_train_epoch_end")
            self.current_epoch += 1
        self._call("on_train_end")


# ---- Keras


class KerasHooks:
    """As `keras.callbacks.Callback`."""

    def __init__(self) -> None:
        self.params: Any = None
        self._model: Any = None

    @property
    def model(self) -> Any:
        return self._model

    def set_params(self, params: Any) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self._model = model


class KerasStandIn:
    """As a `keras.Model`."""

    name, layers, stop_training = "logistic", (), False

    def __init__(self, columns: int) -> None:
        self.net = _Logistic(columns)

    def to_json(self) -> str:
        return json.dumps({"class_name": "KerasStandIn", "config": {"name": self.name}})

    def get_weights(self) -> list[Any]:
        return [self.net.weights]

    def __call__(self, X: Any) -> Any:
        return self.net(X)[:, None]

    def fit(self, X: Any, y: Any, *, validation_data: Any, epochs: int, callbacks: Any) -> None:
        self.stop_training = False
        for callback in callbacks:
            callback.set_model(self)
            callback.set_params({"epochs": epochs})
            callback.on_train_begin()
        for epoch in range(epochs):
            self.net.step(X, y)
            logs = {"loss": 0.0}
            if validation_data is not None:
                rows, labels = validation_data
                logs["val_accuracy"] = float(np.mean((self.net(rows) > 0.5) == labels))
            for callback in callbacks:
                callback.on_epoch_end(epoch, logs)
            if self.stop_training:
                break


# ---- what a callback is made of


def callback_class(name: str) -> Any:
    """Class of a callback, made of the library's own, or where that is not installed of the stand-in for it."""
    library, module, hooks = {
        "LightningCallback": ("lightning", "lightning.pytorch", LightningHooks),
        "KerasCallback": ("keras", "keras.callbacks", KerasHooks),
    }[name]
    if importlib.util.find_spec(library) is not None:
        return getattr(importlib.import_module(f"reusable_holdout_callbacks.of_{library}"), name)
    stand_in = types.ModuleType(module)
    stand_in.Callback = hooks  # type: ignore[attr-defined]
    home = f"reusable_holdout_callbacks.of_{library}"
    sys.modules.pop(home, None)  # it may be known without its library
    sys.modules[library], sys.modules[module] = types.ModuleType(library), stand_in
    try:
        return getattr(importlib.import_module(home), name)
    finally:
        del sys.modules[library], sys.modules[module]
