"""What is asked for, not compared: a reveal, a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import LedgerError
from reusable_holdout.guard.answer import Answer, Choice
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.kinds import Outcome, State, Terms
from reusable_holdout.guard.kinds import choose as choosing
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.guard.kinds.stated import checked_names, checked_priors, listed
from reusable_holdout.guard.models import fitted, training_rows
from reusable_holdout.guard.training_estimate import PriorMethod
from reusable_holdout.slips import checked_call

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
        return self._reveal_model(ready, stated, type(model).__name__ if name is None else name, X_train)

    @sealed
    def _reveal_model(self, model: Any, prior: float, name: str, X_train: Any) -> Answer:
        stated = self._ways.reveal.check_stated(prior, self.metric.name)
        question = self._model_question(model, self._ways.reveal.grid_unit(stated), b"reveal")

        def predicted() -> NDArray[Any] | None:
            found = self._predicted([model], X_train)
            return None if found is None else found[0]

        return self._revealed(predicted, stated, question, name)

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
        stated = self._ways.reveal.check_stated(prior, self.metric.name)
        prepared = self._holdout.bound.prepare(predictions)
        question = self._content.question(prepared, self._ways.reveal.grid_unit(stated), b"reveal")
        return self._revealed(lambda: prepared, stated, question, name)

    def _revealed(
        self, predicted: Callable[[], NDArray[Any] | None], prior: float, question: bytes, name: str
    ) -> Answer:
        (label,) = checked_names([name], 1)
        kind = self._ways.reveal
        answer = self._answer(
            kind,
            Query(question, label),
            lambda state: kind.check_affordable(kind.worst_nats(), state, "a reveal"),
            lambda: self._sampled(kind, predicted()),
            partial(kind.answer, prior, None, question),
        )
        return self._told(answer)

    @checked_call
    def choose(self, models: Sequence[Any], priors: Sequence[float], *, name: str = "") -> Choice:
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
            If a model fails on the holdout: no value is told, and the message names the best of the others.
        """
        self._check_features("choose_predictions")
        candidates = listed(models, "models")
        return self._choose_models([fitted(model, None, None) for model in candidates], priors, name)

    @sealed
    def _choose_models(self, models: list[Any], priors: Any, name: str) -> Choice:
        checked_names([name], 1)  # before the rows are read
        stated = self._stated_priors(priors, len(models))
        each = zip(models, self._ways.choose.grid_units(stated).tolist(), strict=True)
        digests = [self._model_question(model, unit, b"choose") for model, unit in each]

        def measure() -> list[Sample | int | None]:
            self._holdout.try_out(models)
            return [self._sampled(self._ways.choose, self._holdout.predicted(model)) for model in models]

        return self._chosen(measure, stated, digests, name)

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
        prepared, kind = self._holdout.bound.prepare_many(predictions), self._ways.choose
        checked_names([name], 1)  # before the rows are read
        stated = self._stated_priors(priors, len(prepared))
        each = zip(prepared, kind.grid_units(stated).tolist(), strict=True)
        digests = [self._content.question(one, unit, b"choose") for one, unit in each]
        return self._chosen(lambda: [self._sampled(kind, one) for one in prepared], stated, digests, name)

    def _stated_priors(self, priors: Any, count: int) -> NDArray[np.float64]:
        certificate = self._ways.reveal.certificate
        return checked_priors(priors, count, certificate.lower, certificate.upper, self.metric.name)

    def _chosen(
        self,
        measure: Callable[[], Sequence[Sample | int | None]],
        priors: NDArray[np.float64],
        candidates: Sequence[bytes],
        name: str,
    ) -> Choice:
        (label,) = checked_names([name], 1)
        kind, count = self._ways.choose, len(candidates)
        question = Query(self._content.several(b"choose", candidates), label)
        # a candidate that comes again in another choice must not come with the same noise
        own = [self._content.several(b"noise", [question.digest, candidate]) for candidate in candidates]

        def refuse(state: State) -> None:
            self._transcript.check_room(count, state)
            kind.check_affordable(kind.worst_nats(count), state, "a choice")

        def decide(measured: Sequence[Sample | int | None], state: State) -> tuple[Terms, Outcome]:
            return kind.choose(measured, priors, own, state)

        answer = self._told(self._answer(kind, question, refuse, measure, decide, takes=count))
        winner = choosing.Winner.parse(answer.told)
        if winner is None:
            raise LedgerError(f"query {answer.query} is no choice; verify the ledger; nothing was asked")
        return Choice(winner.candidate, answer, self._others(answer, question.digest))

    def _others(self, answer: Answer, question: bytes) -> float:
        """What no other candidate is better than, from what was told; the same when it is replayed."""
        kind, terms = self._ways.choose, Terms(answer.prior, answer.threshold)
        length = self._transcript.length_of(kind, question)
        return kind.others(kind.outcome(answer.told, terms), terms, length)
