"""A callback of Lightning's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from reusable_holdout.errors import InputError
from reusable_holdout_callbacks.bases import base_class
from reusable_holdout_callbacks.networks import NetworkRounds, Predicted

__all__ = ["LightningCallback"]

_MODULES = ("lightning.pytorch", "pytorch_lightning")
_Base: Any = base_class("Callback", _MODULES, needs="lightning: pip install lightning")


class LightningCallback(NetworkRounds, _Base):  # type: ignore[misc]  # what a library has, if it is installed
    """Callback of Lightning that asks a guarded holdout once an epoch, with the validation score as the prior.

    For ``Trainer(callbacks=[...])``. Each epoch that is asked about takes one of the declared queries.

    Parameters
    ----------
    guard : ReusableHoldout
        With features; no gate.
    predict : callable
        ``predict(module, X)`` gives what the guard's metric needs of the rows X: labels, probabilities, scores or
        values. X is what the guard was made with; the module is in evaluation mode; whether gradients are
        kept is the function's affair.
    prior : str or callable, optional
        Name of a logged validation score in the unit of the guard's metric, such as "val_acc", or a function of
        ``trainer.callback_metrics``. Needed unless the guard is a ladder.
    every : int
        Epochs from one query to the next; the last epoch that was validated is asked about, too.
    on_halt : {"raise", "stop"}
        Whether a halt is raised out of the training, or sets ``trainer.should_stop`` with a warning.

    Notes
    -----
    `answers` has what was answered, also after a halt, which is raised as `Halted`: see
    :class:`~reusable_holdout_callbacks.rounds.Rounds`.

    Epochs without validation are not asked about, nor are sanity checks and ``fast_dev_run``. Trainings of several
    processes are refused. A module that cannot be pickled is a new question each time; Lightning's can.
    """

    example = 'prior="val_acc", as your module logs it'
    _prior: float | None = None
    _validated = _latest = 0

    @property
    def state_key(self) -> str:
        """Name of this callback's state in a checkpoint: one for each holdout, if a trainer has several."""
        return f"{type(self).__qualname__}{{'metric': {self.guard.metric.name!r}}}"

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, if the training can be asked about."""
        if trainer.world_size > 1:
            raise InputError(
                "each of the processes of this training would ask; nothing was asked; train without the callback, and "
                "ask about the trained module's predictions"
            )
        if self.guard.takes_priors and not trainer.enable_validation:
            raise InputError(
                "the prior of an epoch is a validation score, and this training has no validation; nothing was asked; "
                "give the module a validation_step and the trainer val_dataloaders"
            )
        self._begin()
        self._prior, self._validated, self._latest = None, 0, 0

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Note that the scores are of this epoch."""
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._validated = trainer.current_epoch + 1

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Ask if the epoch is due."""
        number = trainer.current_epoch + 1
        if trainer.fast_dev_run or (self.guard.takes_priors and self._validated != number):
            return
        self._prior = self._logged(trainer.callback_metrics)
        self._latest = number
        if self._is_due(number):
            self._ask_about(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Ask about the last epoch that was validated, if the training has ended with it."""
        if self._latest == trainer.current_epoch and self._is_due(self._latest, last=True):
            self._ask_about(trainer, pl_module)

    def _ask_about(self, trainer: Any, module: Any) -> None:
        with _evaluating(module):
            trainer.should_stop |= self._ask(self._latest, Predicted(module, self.predict), self._prior)


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Dropout and its kin rest meanwhile."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
