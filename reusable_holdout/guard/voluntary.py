"""What is asked for, not compared: a reveal, a choice, the final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError, LedgerError, ModelError
from reusable_holdout.guard.answer import Answer, Choice
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.inputs import checked_names, checked_priors
from reusable_holdout.guard.kinds import Terms, Winner
from reusable_holdout.guard.models import fitted, training_rows
from reusable_holdout.guard.rows import Query
from reusable_holdout.slips import checked_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds import State
    from reusable_holdout.guard.models import PriorMethod

__all__ = ["Voluntary"]


class Voluntary(Asking):
    """What a guard tells because it is asked to, whatever the rows say: it takes no charge, but is paid for."""

    @checked_call
    def reveal(
        self,
        model: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: float | PriorMethod | None = None,
        cv: Any = 5,
        name: str | None = None,
    ) -> Answer:
        """Ask for the holdout's own value, rounded to a cell around the prior.

        It costs its surprise and no charge: about 1.5 nats where the prior is near.

        Parameters
        ----------
        model, X_train, y_train, cv, name
            As for :meth:`evaluate`.
        prior : float, "cross-validation" or "in-sample", optional
            The analyst's own estimate, by default cross-validated.

        Returns
        -------
        Answer

        Raises
        ------
        InputError
            If the input does not fit, or the dearest cell would break a promise of the plan; nothing was told.
        Halted, ModelError
            As for :meth:`evaluate`; a failure takes no charge, but costs nats.
        """
        self._check_features("reveal_predictions")
        X_train, y_train = training_rows(X_train, y_train)
        ready = fitted(model, X_train, y_train)
        stated = "cross-validation" if prior is None else prior
        if isinstance(stated, str):
            stated = self._estimate(ready, X_train, y_train, method=stated, cv=cv)
        return self._reveal_model(ready, stated, type(model).__name__ if name is None else name)

    @sealed
    def _reveal_model(self, model: Any, prior: float, name: str) -> Answer:
        stated = self._reveals.check_stated(prior, self.metric.name)
        question = self._model_question(model, self._reveals.grid_unit(stated), b"reveal")
        return self._revealed(map(self._holdout.predicted, [model]), stated, question, name)

    @sealed
    def reveal_predictions(self, predictions: Any, *, prior: float | None = None, name: str = "") -> Answer:
        """Ask for the holdout's own value of predictions for its rows; as :meth:`reveal`.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes)
            Labels, probabilities, scores or values, as the metric needs.
        prior : float
            The analyst's own estimate of the score.
        name : str
            What history calls the question.

        Returns
        -------
        Answer

        Raises
        ------
        InputError, Halted
            As for :meth:`reveal`.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=2, seed=1)
        >>> answer = guard.reveal_predictions(np.where(np.arange(10_000) % 10, labels, 1 - labels), prior=0.9)
        >>> answer.kind, answer.charged, round(answer.nats, 1), answer.low < 0.9 < answer.high
        ('reveal', False, 1.3, True)
        """
        stated = self._reveals.check_stated(prior, self.metric.name)
        prepared = self._holdout.bound.prepare(predictions)
        question = self._content.question(prepared, self._reveals.grid_unit(stated), b"reveal")
        return self._revealed([prepared], stated, question, name)

    def _revealed(
        self, prepared: Iterable[NDArray[Any] | None], prior: float, question: bytes, name: str
    ) -> Answer:
        """Reveal the score of one prediction, which is made when it is taken: not for what is refused or replayed."""

        def refuse(state: State) -> None:
            self._reveals.check_affordable(self._reveals.worst_nats(), state, "a reveal")

        (label,) = checked_names([name], 1)
        needed = self._transcript.needs_rows(self._reveals, question, refuse)
        (score,) = self._scores_of(prepared) if needed else [None]
        return self._told(self._transcript.reveal(self._reveals, score, prior, Query(question, label)))

    @checked_call
    def choose(
        self,
        models: Sequence[Any],
        priors: Sequence[float],
        *,
        name: str = "",
    ) -> Choice:
        """Ask which of several fitted models is best by the holdout, and for its value, rounded.

        It costs its surprise and no charge: about 3 nats where the prior's favourite wins. Each model is one of the
        declared queries.

        Parameters
        ----------
        models : sequence of estimator
            Fitted.
        priors : sequence of float
            The analyst's own estimates, one for each.
        name : str
            What history calls the question.

        Returns
        -------
        Choice

        Raises
        ------
        BudgetError
            If there are more models than queries left; nothing was told.
        InputError
            If the input does not fit, or the dearest outcome would break a promise of the plan; nothing was told.
        Halted
            If a budget has run out and the question is new.
        ModelError
            If all models fail on the holdout; one that fails is the worst of all.
        """
        self._check_features("choose_predictions")
        candidates = _listed(models, "models")
        return self._choose_models([fitted(model, None, None) for model in candidates], priors, name)

    @sealed
    def _choose_models(self, models: list[Any], priors: Any, name: str) -> Choice:
        stated = self._stated_priors(priors, len(models))
        units = self._reveals.grid_units(stated).tolist()
        digests = [
            self._model_question(model, unit, b"choose") for model, unit in zip(models, units, strict=True)
        ]
        scores = self._scores_to_choose_by(map(self._holdout.predicted, models), digests)
        return self._chosen(scores, stated, digests, name)

    @sealed
    def choose_predictions(self, predictions: Any, priors: Any, *, name: str = "") -> Choice:
        """Ask which of several predictions for the holdout's rows is best; as :meth:`choose`.

        Parameters
        ----------
        predictions : array-like of shape (candidates, rows) or list of arrays
            One candidate per entry.
        priors : array-like of shape (candidates,)
            The analyst's own estimates.
        name : str
            What history calls the question.

        Returns
        -------
        Choice

        Raises
        ------
        BudgetError, InputError, Halted
            As for :meth:`choose`.
        """
        prepared = self._holdout.bound.prepare_many(predictions)
        stated = self._stated_priors(priors, len(prepared))
        digests = [
            self._content.question(one, unit, b"choose")
            for one, unit in zip(prepared, self._reveals.grid_units(stated).tolist(), strict=True)
        ]
        return self._chosen(self._scores_to_choose_by(prepared, digests), stated, digests, name)

    def _scores_to_choose_by(
        self, prepared: Iterable[NDArray[Any] | None], candidates: Sequence[bytes]
    ) -> list[int | None]:
        """Scores of predictions, which are made when they are taken: not for what is refused or replayed."""
        count, question = len(candidates), self._content.several(b"choose", candidates)

        def refuse(state: State) -> None:
            self._transcript.check_room(count, state)
            self._choices.check_affordable(self._choices.worst_nats(count), state, "a choice")

        needed = self._transcript.needs_rows(self._choices, question, refuse)
        return self._scores_of(prepared) if needed else [None] * count

    def _stated_priors(self, priors: Any, count: int) -> NDArray[np.float64]:
        certificate = self._reveals.certificate
        return checked_priors(priors, count, certificate.lower, certificate.upper, self.metric.name)

    def _chosen(
        self,
        scores: Sequence[int | None],
        priors: NDArray[np.float64],
        candidates: Sequence[bytes],
        name: str,
    ) -> Choice:
        (label,) = checked_names([name], 1)
        question = Query(self._content.several(b"choose", candidates), label)
        # a candidate that comes again in another choice must not come with the same noise
        own = [self._content.several(b"noise", [question.digest, candidate]) for candidate in candidates]
        answer = self._told(self._transcript.choose(self._choices, scores, priors, question, own))
        winner = Winner.parse(answer.told)
        if winner is None:
            raise LedgerError(f"query {answer.query} is no choice; verify the ledger; nothing was asked")
        return Choice(winner.candidate, answer, self._others(answer))

    def _others(self, answer: Answer) -> float:
        """What no other candidate is better than, from what was told; the same when it is replayed."""
        terms = Terms(answer.prior, answer.threshold)
        outcome = self._choices.outcome(answer.told, terms)
        return self._choices.others(outcome, terms, self._transcript.length_of(self._choices, answer.query))

    @checked_call
    def final(self, model: Any, *, name: str | None = None) -> Any:
        """Ask for the certified end of a project: the holdout's own value, with the narrowest interval.

        Once: nothing new is answered afterwards, though what was asked replays free. Allowed after a halt.

        Parameters
        ----------
        model : estimator, or list or tuple of estimators
            Fitted. Several are certified together, each a little wider.
        name : str, optional
            What history calls it; by default the model's type.

        Returns
        -------
        Answer, or list of Answer
            Of one model, or of several.

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
        models = [fitted(one, None, None) for one in _listed(model if several else [model], "models")]
        names = [type(one).__name__ if name is None else name for one in models]
        answers = self._final_models(models, names)
        return answers if several else answers[0]

    @sealed
    def _final_models(self, models: list[Any], names: list[str]) -> list[Answer]:
        digests = [self._model_question(model, 0, b"final") for model in models]
        return self._finished(map(self._holdout.predicted, models), digests, names)

    @sealed
    def final_predictions(self, predictions: Any, *, name: str = "") -> Any:
        """Ask for the certified end of a project with predictions for the holdout's rows; as :meth:`final`.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes), or list or tuple of such arrays
            Several are certified together.
        name : str
            What history calls it.

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
        bound = self._holdout.bound
        several = (
            isinstance(predictions, list | tuple) and np.ndim(_listed(predictions, "predictions")[0]) > 0
        )
        prepared = bound.prepare_many(list(predictions)) if several else bound.prepare(predictions)[None]
        digests = [self._content.question(one, 0, b"final") for one in prepared]
        answers = self._finished(prepared, digests, [name] * len(digests))
        return answers if several else answers[0]

    def _finished(
        self, prepared: Iterable[NDArray[Any] | None], digests: Sequence[bytes], names: Sequence[str]
    ) -> list[Answer]:
        """Tell the scores of predictions, which are made when they are taken: not after another final."""
        labels = checked_names(list(names), len(digests))
        questions = [Query(digest, label) for digest, label in zip(digests, labels, strict=True)]
        if len(set(digests)) < len(digests):
            raise InputError(
                "a final is of different models; two are the same; nothing was told; name each once"
            )
        ended = self._finals.halt_reason(self._transcript.state) is not None
        scores = [None] * len(digests) if ended else self._scores_of(prepared)
        answers = self._transcript.final(self._finals, scores, questions)
        given = [answer for answer in answers if answer is not None]
        self._tell([answer for answer in given if not answer.replayed])
        if len(given) < len(answers):
            raise ModelError(
                f"{len(answers) - len(given)} of {len(answers)} models or metrics failed on the holdout; their words "
                "are withheld, for they may quote the holdout; the final was given, and tells that; what it tells of "
                "the others is in history(), or replay them alone"
            )
        return given


def _listed(several: Any, what: str) -> list[Any]:
    """A list of at least one."""
    if isinstance(several, list | tuple) and several:
        return list(several)
    raise InputError(
        f"{what} must be a list of at least one; got {type(several).__name__}; nothing was asked"
    )
