"""Questions that compare a score with a prior: of one model, of predictions, of many, of two models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike, NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.guard import batches
from reusable_holdout.guard import guardrails as guarding
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.answered import Query, all_answered
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.stated import Statement, checked_names
from reusable_holdout.guard.models import fitted, training_rows
from reusable_holdout.guard.training_estimate import PriorMethod
from reusable_holdout.slips import checked_call

__all__ = ["Questions"]


class Questions(Asking):
    """Questions that compare: with a prior, with the best so far, two models."""

    @checked_call
    def evaluate(
        self,
        model: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: float | PriorMethod | None = None,
        tolerance: float | None = None,
        cv: Any = 5,
        name: str | None = None,
        series: str = "",
        anew: bool = False,
        guardrails: Mapping[Any, float] | None = None,
    ) -> Answer:
        """Ask how good a model really is.

        Parameters
        ----------
        model : estimator
            Fitted; or not, and then a clone is fitted on the training data.
        X_train, y_train : array-like, optional
            Training data, disjoint from the holdout; needed unless a prior is stated. Where rows are compared (see
            `overlap`), a model that is asked about with rows of the holdout fails.
        prior : float, "cross-validation" or "in-sample", optional
            The analyst's own estimate, by default cross-validated. Stated as a number, it is taken as given. A bad
            prior costs charges, never validity. A gate's must be stated; a ladder has its own.
        tolerance : float, optional
            For guess-and-check: how far the answer may be from the population value; the guard's by default.
        cv : int or cross-validation splitter
            Folds of the cross-validated prior.
        name : str, optional
            What history calls the question; by default the model's type.
        series, anew
            As for :meth:`evaluate_predictions`.
        guardrails : dict of guard to float, optional
            For a gate: guards that :meth:`on` gave for other metrics of the rows, and what each must reach, too, for
            "yes". One charge for all; each takes one of the declared queries.

        Returns
        -------
        Answer
            The same fitted model with the same prior gets the recorded answer. Another model is another question, even
            if both predict the same: that they do is a fact about the private rows.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit, or the model fails in the same way on made-up rows with the holdout's columns and
            on the first of X_train; nothing was asked and nothing was charged.
        ModelError
            If the model fails on the holdout, or `X_train` holds rows of it, more than chance explains. That is a fact
            about the holdout: it takes a charge.
        """
        self._check_features("evaluate_predictions")
        X_train, y_train = training_rows(X_train, y_train)
        ready = fitted(model, X_train, y_train)
        if prior is None and self.policy in {"thresholdout", "guess-and-check", "claims"}:
            prior = "cross-validation"
        if isinstance(prior, str):
            prior = self._estimate(ready, X_train, y_train, method=prior, cv=cv)
        called = type(model).__name__ if name is None else name
        return self._evaluate_model(ready, prior, tolerance, called, series, guardrails, X_train, anew=anew)

    @sealed
    def _evaluate_model(
        self,
        model: Any,
        prior: float | None,
        tolerance: float | None,
        name: str,
        series: str,
        guardrails: Any,
        X_train: Any,
        *,
        anew: bool,
    ) -> Answer:
        if guardrails is not None:
            return guarding.gate_models(self, [model], prior, guardrails, name, X_train)
        policy = self._ways.policy
        asked = policy.asked(prior, tolerance, self.metric.name)
        question = self._model_question(model, asked.unit + policy.series_unit(series))
        predicted = partial(self._predicted, [model], X_train)
        return self._ask(policy, predicted, asked, question, name, series, anew=anew)

    @sealed
    def evaluate_predictions(
        self,
        predictions: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: str = "",
        series: str = "",
        anew: bool = False,
        guardrails: Mapping[Any, Any] | None = None,
    ) -> Answer:
        """Ask about predictions for the holdout's rows, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes) or (rows, repeats)
            Labels, probabilities, scores or values, as the metric needs. Judged scores may be a table or series with
            ids as a column or index: it is aligned by them.
        prior : float
            The analyst's own estimate of the score, in the metric's unit and within its bounds; left out for a ladder.
        tolerance : float, optional
            For guess-and-check: how far the answer may be from the population value; the guard's by default.
        name : str
            What history calls the question.
        series : str
            For a ladder: whose best it is compared with, such as a team's. All series share the budget. For claims:
            whose claim it is, and whose allowance a charge spends.
        anew : bool
            For claims: ask though these predictions were answered before, at this series' own expense.
        guardrails : dict of guard to float or (predictions, float), optional
            As for :meth:`evaluate`; with predictions of its own, where the metric needs others.

        Returns
        -------
        Answer

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit; nothing was asked and nothing was charged.
        """
        if guardrails is not None:
            return guarding.gate_predictions(self, [predictions], prior, guardrails, name)
        policy = self._ways.policy
        asked = policy.asked(prior, tolerance, self.metric.name)
        prepared = self._holdout.bound.prepare(predictions)
        question = self._content.question(prepared, asked.unit + policy.series_unit(series))
        return self._ask(policy, lambda: prepared[None], asked, question, name, series, anew=anew)

    @sealed
    def evaluate_many(
        self,
        predictions: Any,
        priors: ArrayLike | None = None,
        *,
        tolerances: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        series: str = "",
    ) -> list[Answer]:
        """Ask a batch: cheaper than one by one, and tighter, for all of it shares the history before it; not of claims.

        Parameters
        ----------
        predictions : array-like of shape (queries, rows) or list of arrays
            One question per entry. Of judged scores with repeats, shape (queries, rows, repeats).
        priors : array-like of shape (queries,)
            The analyst's own estimates; left out for a ladder.
        tolerances : array-like of shape (queries,), optional
            For guess-and-check.
        names : sequence of str, optional
            What history calls the questions.
        series : str
            As for :meth:`evaluate_predictions`.

        Returns
        -------
        list of Answer
            In the order of the questions; repeated questions are replays.

        Raises
        ------
        Halted
            If a budget runs out on the way; the answers before that are in its `answers` and stay valid.
        BudgetError
            If more is asked than queries are left; nothing was answered or charged. Claims are asked up to the halt.
        ModelError
            If a metric of your own fails on some entries; the answers of the others are in its `answers`.
        InputError
            If one question does not fit; nothing was asked and nothing was charged.
        """
        policy, prepared = self._ways.policy, self._holdout.bound.prepare_many(predictions)
        stated, limits, units = policy.asked_many(priors, tolerances, len(prepared), self.metric.name)
        labels, own = checked_names(names, len(prepared)), policy.series_unit(series)
        questions = [
            self._content.question(one, unit + own) for one, unit in zip(prepared, units, strict=True)
        ]
        if policy.on_board:
            queries = [Query(one, label, series) for one, label in zip(questions, labels, strict=True)]
            return all_answered(batches.claim_each(self, policy, prepared, stated, queries))
        needed = self._transcript.needs_rows_of_batch(policy, questions, stated, limits)
        scores = self._scored_each(policy, prepared, stated, limits) if needed else None
        ask = partial(self._transcript.ask_many, policy, scores, stated, questions, labels)
        return all_answered(self._told_batch(partial(ask, tolerances=limits, series=series)))

    @sealed
    def compare_predictions(
        self,
        predictions: Any,
        incumbent: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: str = "",
        guardrails: Mapping[Any, Any] | None = None,
    ) -> Answer:
        """Ask how much better predictions are than others for the same rows.

        On the budget of all questions; narrower than the difference of two answers, because rows on which the two agree
        do not count: the rows decide, by their evidence, and nothing is declared of them.

        Parameters
        ----------
        predictions, incumbent : array-like of shape (rows,) or (rows, classes)
            Labels, probabilities, scores or values, as the metric needs.
        prior : float
            The analyst's own estimate of the difference, new less old, in the metric's unit. A gate answers whether the
            difference is at least this.
        tolerance : float, optional
            Farthest an agreed prior may be from the population's difference, in its unit; of a gate, how far below what
            is named the difference of what is accepted may be. By default the guard's.
        name : str
            What history calls the question.

        Returns
        -------
        Answer
            Its value, prior and interval are differences.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit, the metric is no mean over rows, or the policy is a ladder; nothing was asked and
            nothing was charged.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, tolerance=0.05, seed=1)
        >>> better, worse = labels, np.where(np.arange(10_000) % 20, labels, 0)
        >>> answer = guard.compare_predictions(better, worse, prior=0.025)
        >>> answer.value, answer.low < 0.025 < answer.high
        (0.025, True)
        """
        if guardrails is not None:
            return guarding.gate_predictions(self, [predictions, incumbent], prior, guardrails, name)
        kind, asked = self._comparison(prior, tolerance)
        both = self._holdout.bound.prepare_many([predictions, incumbent])
        question = self._content.question(both, asked.unit, b"comparison")
        return self._ask(kind, lambda: both, asked, question, name)

    @checked_call
    def compare(
        self,
        model: Any,
        incumbent: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: float | PriorMethod | None = None,
        tolerance: float | None = None,
        cv: Any = 5,
        name: str | None = None,
        guardrails: Mapping[Any, float] | None = None,
    ) -> Answer:
        """Ask how much better a model is than another: the question of every release gate.

        Parameters
        ----------
        model, incumbent : estimator
            As for :meth:`evaluate`.
        X_train, y_train, prior, tolerance, cv, name, guardrails
            As for :meth:`evaluate`; the prior is the difference of the two models' estimates, and guardrails name the
            least differences that pass: ``{auc: -0.01}`` for an AUC that is no worse by more than that.

        Returns
        -------
        Answer
            Its value, prior and interval are differences, new less old, in the metric's unit.

        Raises
        ------
        Halted, InputError, ModelError
            As for :meth:`evaluate` and :meth:`compare_predictions`.
        """
        self._check_features("compare_predictions")
        if model is incumbent:
            raise InputError(
                f"two models must be compared; got one {type(model).__name__} twice, which differs from itself by 0; "
                "nothing was asked and nothing was charged; pass the new model and then the old one"
            )
        X_train, y_train = training_rows(X_train, y_train)
        pair = [fitted(one, X_train, y_train) for one in (model, incumbent)]
        if prior is None and self.policy != "gate":
            prior = "cross-validation"
        if isinstance(prior, str):
            ours, theirs = (self._estimate(one, X_train, y_train, method=prior, cv=cv) for one in pair)
            prior = ours - theirs
        called = f"{type(model).__name__} less {type(incumbent).__name__}" if name is None else name
        return self._compare_models(pair, prior, tolerance, called, guardrails, X_train)

    @sealed
    def _compare_models(
        self,
        pair: list[Any],
        prior: float | None,
        tolerance: float | None,
        name: str,
        guardrails: Any,
        X_train: Any,
    ) -> Answer:
        if guardrails is not None:
            return guarding.gate_models(self, pair, prior, guardrails, name, X_train)
        self._check_models(pair)
        kind, asked = self._comparison(prior, tolerance)
        question = self._content.model_question(fingerprint(pair), asked.unit)
        return self._ask(kind, lambda: self._predicted(pair, X_train), asked, question, name)

    def _comparison(self, prior: float | None, tolerance: float | None) -> tuple[Check, Statement]:
        if self._ways.comparison is None:
            raise InputError(
                "a ladder compares with the best so far by itself; use another policy to compare two models"
            )
        self._check_differences()
        return self._ways.comparison, self._ways.comparison.asked(prior, tolerance, self.metric.name)

    def _ask(
        self,
        kind: Check,
        predicted: Callable[[], NDArray[Any] | None],
        asked: Statement,
        question: bytes,
        name: str,
        series: str = "",
        *,
        anew: bool = False,
    ) -> Answer:
        """Ask about what is predicted, if it comes to that."""
        (label,) = checked_names([name], 1)
        query = Query(question, label, series, asked.tolerance)
        return self._compared(
            kind,
            query,
            asked.prior,
            lambda: self._measured(kind, predicted(), asked.prior, asked.tolerance),
            anew=anew,
        )
