"""The methods that ask a guard: each makes a question and passes it to the single entry point, `ask`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reusable_holdout.answer import Answer, Choice
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.door import ask
from reusable_holdout.guard.models import fitted, training_rows
from reusable_holdout.guard.overview import Overview
from reusable_holdout.guard.questions import Question, raise_failures
from reusable_holdout.guard.subjects import Difference, Measured, is_model, is_several
from reusable_holdout.guard.training_estimate import training_estimate
from reusable_holdout.guard.walk_forward import WalkForward, estimate_of
from reusable_holdout.guard.worse import gate_or_worse
from reusable_holdout.slips import checked_call


class Verbs(Overview):
    """Questions about models, predictions and differences of two."""

    @checked_call
    def evaluate(
        self,
        subject: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: Any = None,
        tolerance: Any = None,
        cv: Any = 5,
        name: Any = None,
        series: str = "",
        anew: bool = False,
    ) -> Any:
        """Ask how good a model or its predictions really are.

        Parameters
        ----------
        subject : estimator, array-like of shape (rows,), (rows, classes) or (rows, repeats), Difference, or a list
            A model (if it is not fitted, a clone is fitted on the training data), predictions for the holdout's rows in
            their order, or the difference of two of these. Judged scores may be a table or series with ids as a column
            or index. A list or tuple asks about several, which is cheaper: all share the history before the list.
        X_train, y_train : array-like, optional
            Training data, needed unless a prior is stated. If they hold rows of the holdout, the model fails.
        prior : float or sequence of float, optional
            The analyst's own estimate; for a model, cross-validated by default. A bad one costs charges, not validity.
        tolerance : float, optional
            Largest distance of this answer from the population value; by default the guard's.
        cv : int or cross-validation splitter
            Folds of the cross-validated prior.
        name : str, optional
            Name of the question in the history; by default the model's type.
        series : str
            On a board of claims: the series that makes the claim, and pays a charge from its allowance.
        anew : bool
            On a board of claims: ask even if these predictions were answered to another series; this series pays.

        Returns
        -------
        Answer, or list of Answer
            The same subject with the same prior gets the recorded answer. Another model is another question, even if
            both predict the same, because it would tell a fact about the private rows that they do.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        BudgetError
            If more questions are asked than queries are left; nothing was answered or charged.
        InputError
            If the input does not fit; nothing was asked and nothing was charged.
        ModelError
            If a model or a metric of your own fails on the holdout, or `X_train` holds rows of it, more than chance
            explains. That is a fact about the holdout, and takes a charge. For a list, the error's `answers` hold the
            answers about the other subjects.
        """
        subject, (prior, error), X_train = self._ready(subject, prior, X_train, y_train, cv)
        named = _named(subject, name)
        return self._one(
            Question("evaluate", subject, prior, tolerance, None, None, series, named, X_train, anew, error)
        )

    @checked_call
    def compare(
        self,
        new: Any,
        old: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: Any = None,
        tolerance: float | None = None,
        cv: Any = 5,
        name: str | None = None,
    ) -> Answer:
        """Ask how much better one model, or one set of predictions, is than another; see :meth:`evaluate`.

        It uses the same budget as other questions. Its interval is narrower than that of the difference of two answers,
        because rows on which the two agree do not count.

        Parameters
        ----------
        new, old : estimator or array-like
            Both models, or both predictions.
        X_train, y_train, prior, tolerance, cv, name
            As for :meth:`evaluate`; the prior is the difference of the two estimates, new less old.

        Returns
        -------
        Answer
            Its value, prior and interval are differences, new less old, in the metric's unit.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) // 5 % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, tolerance=0.05, seed=1)
        >>> better, worse = labels, np.where(np.arange(10_000) % 20, labels, 0)
        >>> answer = guard.compare(better, worse, prior=0.025)
        >>> answer.value, answer.low < 0.025 < answer.high
        (0.025, True)
        """
        answer: Answer = self.evaluate(
            Difference(new, old), X_train, y_train, prior=prior, tolerance=tolerance, cv=cv, name=name
        )
        return answer

    @checked_call
    def gate(
        self,
        subject: Any,
        at_least: Any,
        *,
        tolerance: Any = None,
        guardrails: Mapping[Any, Any] | None = None,
        tell_worse: bool = False,
        name: Any = None,
        X_train: Any = None,
    ) -> Any:
        """Ask only if a model, or the difference of two, is certified to reach a value that you name.

        Parameters
        ----------
        subject : estimator, array-like, Difference, or a list of them
            As for :meth:`evaluate`; models are fitted.
        at_least : float, or sequence of float
            Value that the subject must reach, in the metric's unit; for a difference, the least improvement: -0.02 asks
            if the new one is worse by at most 0.02.
        tolerance : float, optional
            For ledgers of earlier editions alone: largest distance of an accepted value below `at_least`.
        guardrails : dict of guard to float or (subject, float), optional
            Guards from :meth:`on` for other metrics of the rows, and the value that each must reach; with a subject of
            its own if the metric needs other predictions. There is one charge for all; each takes one of the declared
            queries.
        tell_worse : bool
            For one Difference: if it is not shown to be better, ask the gate of the reversed difference, too, for
            one more of the declared queries. It may then be "worse", for a charge: certified to be at most `at_least`.
        name, X_train
            As for :meth:`evaluate`.

        Returns
        -------
        Answer, or list of Answer
            Its outcome is "better", for a charge, or "not shown", which is free and bounds nothing.
        """
        if tell_worse is not False:
            more = {"tolerance": tolerance, "guardrails": guardrails, "X_train": X_train}
            return gate_or_worse(tell_worse, self.gate, subject, at_least, name, **more)
        named = _named(subject, name)
        return self._one(
            Question("gate", subject, at_least, tolerance, None, guardrails, name=named, X_train=X_train)
        )

    @checked_call
    def reveal(
        self,
        subject: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        prior: Any = None,
        cv: Any = 5,
        name: Any = None,
    ) -> Any:
        """Ask for the holdout's own value, rounded to a cell around the prior.

        It costs no charge, but nats: about 1.5 if the prior is near the value, more if it is far.

        Parameters
        ----------
        subject, X_train, y_train, prior, cv, name
            As for :meth:`evaluate`; no differences.

        Returns
        -------
        Answer, or list of Answer

        Raises
        ------
        InputError
            If the input does not fit, or the most expensive cell would break a promise of the plan; nothing was
            released.
        Halted, ModelError
            As for :meth:`evaluate`; a failure takes no charge, but costs nats.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) // 4 % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=2, seed=1)
        >>> answer = guard.reveal(np.where(np.arange(10_000) % 10, labels, 1 - labels), prior=0.9)
        >>> answer.outcome, answer.charged, round(answer.nats, 1), answer.low < 0.9 < answer.high
        ('revealed', False, 1.3, True)
        """
        subject, (prior, _), X_train = self._ready(subject, prior, X_train, y_train, cv)
        return self._one(Question("reveal", subject, prior, name=_named(subject, name), X_train=X_train))

    @checked_call
    def choose(self, subjects: Sequence[Any], priors: Any, *, name: str = "", X_train: Any = None) -> Choice:
        """Ask which of several candidates is best on the holdout, and for the rounded value of the best one.

        It costs no charge, but nats: about 3 if the candidate that the priors favour wins, more if another does. Each
        candidate is one of the declared queries.

        Parameters
        ----------
        subjects : list of estimator or array-like
            Fitted models, or predictions.
        priors : sequence of float
            The analyst's own estimates, one for each candidate.
        name : str
            Name of the question in the history.
        X_train : array-like, optional
            Rows that the models were trained on.

        Returns
        -------
        Choice

        Raises
        ------
        BudgetError
            If there are more candidates than queries left; nothing was told.
        InputError
            If the input does not fit, or the most expensive outcome would break a promise of the plan; nothing was
            released.
        Halted
            If a budget has run out and the question is new.
        ModelError
            If a candidate fails on the holdout: no value is released, and the message names the best of the others.
        """
        choice: Choice = self._one(Question("choose", subjects, priors, name=name, X_train=X_train))
        return choice

    @checked_call
    def final(
        self,
        subject: Any,
        priors: Any = None,
        *,
        name: Any = None,
        also: Sequence[Any] = (),
        X_train: Any = None,
    ) -> Any:
        """Ask the last question of a project: for the holdout's own values, with the narrowest intervals.

        Of several models it finds and certifies the best in one step. It is possible once, also after a halt. Nothing
        new is answered afterwards; earlier questions still replay free.

        Parameters
        ----------
        subject : estimator, array-like, or a list of them
            Fitted models, or predictions.
        priors : float or sequence of float, optional
            The analyst's own estimates. Of several models, those with high priors get narrower intervals.
        name : str, optional
            Name of the final in the history; by default the model's type.
        also : sequence of guards, or of tuples of a guard and a subject, optional
            Other metrics of the rows, from :meth:`on`, that are certified with it; a tuple adds other predictions.
        X_train : array-like, optional
            Rows that the models were trained on: if they hold rows of the holdout, the models fail.

        Returns
        -------
        Answer or Finals
            For a list of subjects :class:`Finals`, which names the best. With `also`, one list of all answers.

        Raises
        ------
        Halted
            If a final was given before.
        ModelError
            If the model fails on the holdout, or all models of a list, or any if `also` is given; this was the final.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) // 2 % 2
        >>> guard = ReusableHoldout(None, labels, seed=1)
        >>> last = guard.final(np.where(np.arange(10_000) % 10, labels, 1 - labels))
        >>> last.value, last.outcome, round((last.high - last.low) / 2, 3)
        (0.9, 'final', 0.006)
        """
        if isinstance(also, str | Overview) or not isinstance(also, Iterable):
            given = f"got {type(also).__name__}; nothing was told"
            raise InputError(f"also= must be guards from on(), or pairs (guard, subject); {given}")
        pairs = [one if isinstance(one, tuple) and len(one) == 2 else (one, subject) for one in also]
        label = _named(subject, name)
        first = Question("final", subject, priors, name=label, X_train=X_train)

        def of_pair(guard: Any, own: Any) -> Question:
            named = label if own is subject or isinstance(name, str) else _named(own, None)
            return first._replace(subjects=own, priors=None, name=named, view=guard)

        questions = [first, *(of_pair(*pair) for pair in pairs)]
        found = self.ask(questions)
        flat = [answer for each in found for answer in (each if isinstance(each, list) else [each])]
        if also or all(isinstance(one, ModelError) for one in flat):
            raise_failures(flat)
        return flat if also else found[0]

    @sealed
    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """Ask questions, in order; every other method that asks calls this one.

        Parameters
        ----------
        questions : sequence of Question

        Returns
        -------
        list
            For each question an :class:`Answer`; for a choice a :class:`Choice`; for a list of subjects, a list. A
            subject that failed on the holdout has a :class:`ModelError` in place of an answer: it took a charge, or the
            cost of its way.

        Raises
        ------
        Halted
            If a budget has run out and a question is new; the answers before it are in its `answers`.
        BudgetError
            If a question needs more queries than are left; nothing of that question was answered or charged.
        InputError
            If a question does not fit; nothing was asked and nothing was charged.
        """
        return ask(self._view, list(questions))

    def _one(self, question: Question) -> Any:
        """Ask one question; raise a ModelError if a subject failed."""
        (found,) = self.ask([question])
        raise_failures(found if isinstance(found, list) else [found])
        return found

    def _ready(
        self, subject: Any, prior: Any, X_train: Any, y_train: Any, cv: Any
    ) -> tuple[Any, tuple[Any, float], Any]:
        """Return the fitted models, their prior and its error, and the training rows; return predictions unchanged."""
        parts = list(subject) if isinstance(subject, Difference) else [subject]
        if not all(is_model(part) and not isinstance(part, Measured) for part in parts):
            return subject, (prior, 0.0), X_train
        X_train, y_train = training_rows(X_train, y_train)
        parts = [fitted(part, X_train, y_train) for part in parts]
        walk = [isinstance(part, WalkForward) for part in parts]
        if prior is None and (X_train is not None or all(walk)):
            each = [
                estimate_of(part, self.metric, self.class_set)
                if walks
                else training_estimate(self.metric, part, X_train, y_train, cv=cv, classes=self.class_set)
                for part, walks in zip(parts, walk, strict=True)
            ]
            if len(each) > 1:  # the plan allows for the error of a difference
                return Difference(*parts), (each[0].mean - each[1].mean, 0.0), X_train
            return parts[0], each[0], X_train
        return Difference(*parts) if isinstance(subject, Difference) else parts[0], (prior, 0.0), X_train


def _named(subject: Any, name: Any) -> Any:
    """Return the name of a question in the history: the given name, or the types of the models."""
    if name is not None:
        return name
    if isinstance(subject, Difference):
        both = [type(part).__name__ if is_model(part) else "" for part in subject]
        return " less ".join(both) if all(both) else ""
    if is_several(subject):
        return [_named(one, None) for one in subject]
    model = subject.model if isinstance(subject, Measured) else subject
    return type(model).__name__ if is_model(model) else ""
