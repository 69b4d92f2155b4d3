"""The final: the certified end of a project."""

from __future__ import annotations

import contextlib
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.kinds.stated import checked_names, listed
from reusable_holdout.guard.models import fitted
from reusable_holdout.slips import checked_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.answer import Answer


__all__ = ["Finals"]


class Finals(Asking):
    """The one question after which nothing new is answered."""

    @checked_call
    def final(self, model: Any, *, name: str | None = None, also: Sequence[Any] = ()) -> Any:
        """Ask for the certified end of a project: the holdout's own value, with the narrowest interval.

        Once: nothing new is answered afterwards, though what was asked replays free. Allowed after a halt.

        Parameters
        ----------
        model : estimator, or list or tuple of estimators
            Fitted. Several are certified together, each a little wider.
        name : str, optional
            What history calls it; by default the model's type.
        also : sequence of guards, optional
            Other metrics of the rows, from :meth:`on`, that are certified with it.

        Returns
        -------
        Answer, or list of Answer
            Of one model, or of several; with `also`, of each model by this metric and then by the others.

        Raises
        ------
        Halted
            If a final was given before.
        InputError
            If the input does not fit; nothing was told.
        ModelError
            If a model fails on the holdout: the final was given, and tells that.
        """
        self._check_features("final_predictions")
        several = isinstance(model, list | tuple)
        models = [fitted(one, None, None) for one in listed(model if several else [model], "models")]
        names = [type(one).__name__ if name is None else name for one in models]
        answers = self._final_models(models, names, also)
        return answers if several or also else answers[0]

    @sealed
    def _final_models(self, models: list[Any], names: list[str], also: Sequence[Any]) -> list[Answer]:
        labels, guards = checked_names(names, len(names)), [self, *self._others_of_rows(also)]
        return self._finished(
            [
                (
                    guard,
                    partial(guard._holdout.predicted, model),
                    Query(guard._model_question(model, 0, b"final"), label),
                )
                for model, label in zip(models, labels, strict=True)
                for guard in guards
            ],
            models,
        )

    def _others_of_rows(self, also: Sequence[Any]) -> list[Asking]:
        if not isinstance(also, list | tuple) or not all(
            isinstance(one, Asking) and one._transcript is self._transcript for one in also
        ):
            raise InputError(
                "also= must be a list of other metrics of the same rows, from on() of the same guard; got "
                f"{type(also).__name__}; nothing was told"
            )
        return list(also)

    @sealed
    def final_predictions(self, predictions: Any, *, name: str = "", also: Sequence[Any] = ()) -> Any:
        """Ask for the certified end of a project with predictions for the holdout's rows; as :meth:`final`.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes), or list or tuple of such arrays
            Several are certified together.
        name : str
            What history calls it.
        also : sequence of guards, or of tuples of a guard and predictions, optional
            As for :meth:`final`; with predictions of its own, where a metric needs others.

        Returns
        -------
        Answer, or list of Answer

        Raises
        ------
        Halted, InputError
            As for :meth:`final`.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=2, seed=1)
        >>> last = guard.final_predictions(np.where(np.arange(10_000) % 10, labels, 1 - labels))
        >>> last.value, last.kind, round((last.high - last.low) / 2, 3)
        (0.9, 'final', 0.008)
        """
        several = isinstance(predictions, list | tuple) and np.ndim(listed(predictions, "predictions")[0]) > 0
        given = list(predictions) if several else [predictions]
        (label,) = checked_names([name], 1)
        pairs = [one if isinstance(one, tuple) else (one, predictions) for one in also]
        own = [(self, given)] + [
            (guard, list(each) if several else [each])
            for guard, (_, each) in zip(self._others_of_rows([one for one, _ in pairs]), pairs, strict=True)
        ]
        prepared = [(guard, guard._holdout.bound.prepare_many(each)) for guard, each in own]
        answers = self._finished(
            [
                (guard, partial(np.asarray, one), Query(guard._content.question(one, 0, b"final"), label))
                for place in range(len(given))
                for guard, ready in prepared
                for one in [ready[place]]
            ]
        )
        return answers if several or also else answers[0]

    def _finished(
        self,
        asked: Sequence[tuple[Asking, Callable[[], NDArray[Any] | None], Query]],
        models: Sequence[Any] = (),
    ) -> list[Answer]:
        """Tell the scores of predictions, which are made when they are taken: not after another final."""
        questions = [question for _, _, question in asked]
        if len({question.digest for question in questions}) < len(asked):
            raise InputError(
                "a final is of different models; two are the same; nothing was told; name each once"
            )
        ended = self._ways.final.halt_reason(self._transcript.state) is not None
        for guard in {} if ended else dict.fromkeys(guard for guard, _, _ in asked):
            guard._holdout.try_out(models)
        scores = [None if ended else guard._sampled_at_last(predicted()) for guard, predicted, _ in asked]
        answers = self._transcript.final([guard._ways.final for guard, _, _ in asked], scores, questions)
        given = [answer for answer in answers if answer is not None]
        guards = [guard for guard, _, _ in asked]
        for guard in dict.fromkeys(guards):
            own = [answer for one, answer in zip(guards, answers, strict=True) if one is guard and answer]
            guard._tell([answer for answer in own if not answer.replayed])
        _warn_of_exams(given)
        if len(given) < len(answers):
            raise ModelError(
                f"{len(answers) - len(given)} of {len(answers)} models or metrics failed on the holdout; their words "
                "are withheld, for they may quote the holdout; the final was given, and tells that; what it tells of "
                "the others is in history(), or replay them alone"
            )
        return given


def _warn_of_exams(answers: Sequence[Answer]) -> None:
    apart = [answer.name or answer.query for answer in answers if answer.apart]
    if not apart:
        return
    with contextlib.suppress(
        RuntimeWarning
    ):  # where warnings are errors: the answer, which says so too, comes first
        warnings.warn(
            f"the exam's rows contradict the others about {', '.join(map(repr, apart))}: their intervals do not meet, "
            "and the answer is all that lies between their ends; of independent rows that is less likely than any miss "
            "of the guard's; see whether the rows are independent, and none of them was used for training",
            RuntimeWarning,
            stacklevel=5,
        )
