"""What the callbacks of neural networks have in common: their users say how they predict, and what they log."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError
from reusable_holdout.slips import checked_call
from reusable_holdout_callbacks.rounds import OnHalt, Rounds

__all__ = ["NetworkRounds", "Predicted"]


class Predicted:
    """A model that a function predicts with.

    Parameters
    ----------
    model : object
    function : callable
        ``function(model, X)`` gives what the guard's metric needs.
    """

    def __init__(self, model: Any, function: Callable[[Any, Any], Any]) -> None:
        self.model, self.function = model, function

    def predict(self, X: Any) -> Any:
        """Predict what the metric needs: labels, probabilities, scores or values.

        Raises
        ------
        RuntimeError
            If the function fails. Its words do not tell how many rows there were, so that a function that fails on
            whatever rows is known by them: the guard refuses it free.
        """
        try:
            return self.function(self.model, X)
        except Exception as error:
            words = re.sub(rf"([(\[]){len(X)}(?=[,)x])", r"\1rows", str(error))
            raise RuntimeError(f"{type(error).__name__}: {words}") from error

    predict_proba = decision_function = predict


class NetworkRounds(Rounds):
    """Callback that is called after each epoch; see :class:`Rounds` for what it keeps, raises and warns of.

    Parameters
    ----------
    guard, every, on_halt
        As for :class:`Rounds`; its rounds are epochs.
    predict : callable
        ``predict(model, X)`` gives what the guard's metric needs of the rows X.
    prior : str or callable, optional
        Name of a logged validation score, or a function of what is logged. Needed unless the guard is a ladder.
    """

    example: ClassVar[str]  # of a prior

    @checked_call
    def __init__(
        self,
        guard: ReusableHoldout,
        predict: Callable[[Any, Any], Any],
        *,
        prior: str | Callable[[Any], float] | None = None,
        every: int = 1,
        on_halt: OnHalt = "raise",
    ) -> None:
        super().__init__(guard, prior=prior, every=every, on_halt=on_halt)
        if not callable(predict):
            raise InputError(
                "predict must be a function (model, X) that gives what the guard's metric needs; got "
                f"{type(predict).__name__}; nothing was made"
            )
        if prior is None and guard.takes_priors:
            raise InputError(
                f"the prior must be a validation score of {guard.metric.name}; none is named; nothing was made; "
                f"pass {self.example}"
            )
        self.predict = predict

    def _logged(self, scores: Mapping[str, Any]) -> float | None:
        """Prior of an epoch, among what was logged."""
        if self.prior is None:
            return None
        if callable(self.prior):
            return float(self.prior(scores))
        if self.prior not in scores:
            listed = ", ".join(map(str, scores)) or "nothing"
            raise InputError(
                f"there is no score {self.prior!r}; logged was: {listed}; nothing was asked; log it for the validation "
                "rows, or pass prior= the name of another score of the guard's metric"
            )
        return float(scores[self.prior])
