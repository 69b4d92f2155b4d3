"""The guard: one holdout, one metric, one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike

from reusable_holdout.answer import Answer, Choice
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard import making
from reusable_holdout.guard.asking import Question, ask
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.handle import the_guard
from reusable_holdout.guard.making import Stated, allowed_of
from reusable_holdout.guard.models import fitted, training_rows
from reusable_holdout.guard.opening import Opening
from reusable_holdout.guard.overview import Overview
from reusable_holdout.guard.subjects import Difference, Measured, is_model, is_several
from reusable_holdout.guard.training_estimate import PriorMethod, check_prior_method, training_estimate
from reusable_holdout.guard.view import GuardedView, Listener
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.plan import Plan
from reusable_holdout.rows import Rows
from reusable_holdout.slips import checked_call

__all__ = ["ReusableHoldout", "Rotation"]


class Rotation(NamedTuple):
    """What a rotation gives: the guard of the new holdout, and the old holdout, which protects nothing any more.

    Attributes
    ----------
    guard : ReusableHoldout
        Of the new holdout.
    X, y : array-like
        The old holdout, free to be trained on.
    """

    guard: ReusableHoldout
    X: Any
    y: Any


@the_guard
class ReusableHoldout(Overview):
    """A holdout that can be asked again and again, because it answers only what it can afford.

    With the plan's confidence, the intervals of all answers together contain the population values, however the
    questions were chosen; and what is released is (epsilon, delta)-differentially private as the plan says.

    Parameters
    ----------
    X, y : array-like, or Rows
        Private features and labels; :class:`Rows` in place of both, where there are classes, weights, groups, ids or
        training rows to be named. See there.
    metric : str or Metric
        A name of the catalogue, or a metric of your own. With "score", "pass@3" or "pass^3" there are no labels: every
        question brings a score for each row.
    plan : Plan, optional
        Numbers of the plan beyond the everyday ones; its rows are counted anew.
    queries : int, optional
        Questions that will be asked at most, 100 by default.
    tolerance : float, optional
        How far an agreed answer may be from the population value; the charges follow from it.
    charges : int, optional
        Deviations to pay for, 3 by default where no tolerance is named; the tolerance follows from them.
    estimate : float, optional
        Score that is expected, which buys the most: the nearer to the metric's bounds, the narrower everything.
    ledger : str, Path or None
        SQLite file or SQLAlchemy URL that holds the budget, shared by all processes; None keeps it in memory, for this
        process alone, until it exits.
    key : bytes or Path, optional
        Noise key of 32 bytes, or the file it lies in; by default ``<ledger>.key``, made with mode 0600. Whoever has the
        key can undo the noise.
    seed : int, optional
        Makes the key from a number, so that runs can be repeated. Whoever knows the seed has the key.
    witness : str or Path, optional
        Another owner's memory of how far the ledger had come, so that a restored copy is refused: a file of another
        owner, ``git:repository@remote#name`` for a git note, or the URL of a name at a server. It stands in the ledger,
        and is asked before, and told after, every answer. Without one a copied ledger gives its budget twice.
    allow : set of str
        The owner's overrides, each of which is recorded in the ledger: "second budget" (the rows have one already; the
        two sets of intervals are then no longer jointly valid), "vacuous" (a plan whose tolerance is more than a
        quarter of the range), "overlap" (rows that were trained on), "no witness".
    replan : bool
        Whether to give the rows another metric or plan than their ledger has: before its first question that costs
        nothing, afterwards it is refused.

    Attributes
    ----------
    plan : Plan
    metric : Metric
    view : int
        Number of its metric and slice among those that are asked about the rows; 0 for the first. See :meth:`on`.
    digest : str
        Keyed digest of the holdout, hex: public, it names the holdout and tells nothing else about it.

    Raises
    ------
    PlanError
        If no plan keeps the wish, or the plan is vacuous, at the class shares that are expected.
    InputError
        If data and metric do not fit.
    OverlapError
        If rows were trained on: by ids one of them, by features more than chance explains; nothing was made.
    SecondBudgetError
        If the rows, or some of them, have a budget in another ledger, or in the memory of this process; nothing was
        made.
    LedgerMismatchError, LedgerKeyError, LedgerError
        If the ledger belongs to something else, its key is missing, or it cannot be used.

    Warns
    -----
    CopiedRowsWarning
        If rows have exactly the features of others, and chance does not explain it; see `groups` of :class:`Rows`.
    SecondBudgetWarning
        If the rows had a budget that was forgotten: says in which ledger, when and why.
    KeptLessWarning
        If the class counts, once they were told, keep less than was wished: the guard was made, and its plan says what
        is kept.
    UserWarning
        If the metric counts one of two classes that are text as positive: which one it is.

    Notes
    -----
    Making a guard on a ledger that has one resumes it: the same holdout and settings continue the same budget, others
    are refused. In memory each process keeps one budget for a set of rows, until it exits, in the same way; the
    environment variable ``REUSABLE_HOLDOUT_REGISTRY=off`` is for simulations. A private set of classes is never told.
    The guard protects against conclusions, not against code that runs in its process and looks at its memory.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout: Preserving validity in adaptive
       data analysis", Science 349.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.random.default_rng(0).integers(0, 2, 10_000)
    >>> guard = ReusableHoldout(None, labels, tolerance=0.05, queries=1_000, seed=1)
    >>> answer = guard.evaluate(labels, prior=1.0)
    >>> answer.value, answer.outcome, answer.query
    (1.0, 'agreed', 1)
    >>> guard.evaluate(labels, prior=1.0).replayed
    True
    """

    @sealed
    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        metric: str | Metric = "accuracy",
        plan: Plan | None = None,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        estimate: float | None = None,
        ledger: str | Path | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        witness: str | Path | None = None,
        allow: Iterable[str] = (),
        replan: bool = False,
    ) -> None:
        stated = Stated(
            metric,
            plan,
            queries,
            tolerance,
            charges,
            estimate,
            ledger,
            key,
            seed,
            witness,
            allowed_of(allow),
            replan,
        )
        self._begin(making.made(_rows(X, y), stated))

    @classmethod
    @sealed
    def open(
        cls,
        ledger: str | Path,
        X: Any,
        y: Any = None,
        *,
        metric: Metric | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        witness: str | Path | None = None,
    ) -> Self:
        """Resume a guard from its ledger; nothing is refilled.

        Parameters
        ----------
        ledger : str or Path
            SQLite file or URL of an existing ledger.
        X, y : array-like, or Rows
            The same as when it was made.
        metric : Metric, optional
            Needed for a metric of your own only.
        key, seed
            The same as when it was made.
        witness : str or Path, optional
            By default the one that stands in the ledger; where that was moved to, if it is no more where it was; or,
            if there is none, one that watches it from now on.

        Raises
        ------
        LedgerError
            If there is no such ledger.
        LedgerMismatchError, LedgerKeyError
            If it belongs to other data or to an earlier version, or its key is missing.
        RolledBackError
            If it does not go on from what its witness has seen.
        """
        stated = Stated(metric=metric, key=key, seed=seed, witness=witness)  # type: ignore[arg-type]
        return cls._of(making.opened(_rows(X, y), ledger, stated))

    @classmethod
    def _of(cls, view: GuardedView) -> Self:
        guard = cls.__new__(cls)
        guard._begin(view)
        return guard

    def _begin(self, view: GuardedView) -> None:
        self._view, self.plan, self.metric, self.view = view, view.plan, view.metric, view.number
        self._handle = None

    # ---- questions

    @sealed
    def ask(self, questions: Sequence[Question]) -> list[Any]:
        """Ask questions, in order: every other way to ask is made of this one.

        Parameters
        ----------
        questions : sequence of Question

        Returns
        -------
        list
            Of each question an :class:`Answer`; of a choice a :class:`Choice`; of one whose subjects are a list, a
            list. What failed on the holdout is a :class:`ModelError` in place of an answer: it took a charge, or what
            the way costs.

        Raises
        ------
        Halted
            If a budget has run out and a question is new; the answers before it are in its `answers`.
        BudgetError
            If more is asked than queries are left; nothing of that question was answered or charged.
        InputError
            If a question does not fit; nothing was asked and nothing was charged.
        """
        return ask(self._view, list(questions))

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
            A model, fitted, or not, and then a clone is fitted on the training data; predictions for the holdout's
            rows, in their order; or the difference of two of these. Judged scores may be a table or series with ids as
            a column or index. Several are a list or tuple: they share the history before them, which is cheaper and
            tighter than one by one.
        X_train, y_train : array-like, optional
            Training data, disjoint from the holdout; needed unless a prior is stated. A model that is asked about with
            rows of the holdout fails.
        prior : float, sequence of float, "cross-validation" or "in-sample", optional
            The analyst's own estimate, of a model cross-validated by default. A bad prior costs charges, never
            validity.
        tolerance : float, optional
            How far the answer to this question may be from the population value; the guard's by default.
        cv : int or cross-validation splitter
            Folds of the cross-validated prior.
        name : str, optional
            What history calls the question; by default the model's type.
        series : str
            On a board of claims: whose claim it is, and whose allowance a charge spends.
        anew : bool
            On a board of claims: ask though these predictions were answered before, at this series' own expense.

        Returns
        -------
        Answer, or list of Answer
            The same subject with the same prior gets the recorded answer. Another model is another question, even if
            both predict the same: that they do is a fact about the private rows.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        BudgetError
            If more is asked than queries are left; nothing was answered or charged.
        InputError
            If the input does not fit; nothing was asked and nothing was charged.
        ModelError
            If a model or a metric of your own fails on the holdout, or `X_train` holds rows of it, more than chance
            explains. That is a fact about the holdout: it takes a charge. Of a list the answers to the others are in
            its `answers`.
        """
        subject, prior, X_train = self._ready(subject, prior, X_train, y_train, cv)
        return self._one(
            Question(
                "evaluate",
                subject,
                prior,
                tolerance,
                series=series,
                name=_named(subject, name),
                X_train=X_train,
                anew=anew,
            )
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
        """Ask how much better a model is than another, or predictions than others; as :meth:`evaluate`.

        On the budget of all questions; narrower than the difference of two answers, because rows on which the two agree
        do not count.

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
        >>> labels = np.arange(10_000) % 2
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
        name: Any = None,
        X_train: Any = None,
    ) -> Any:
        """Ask whether a model, or the difference of two, reaches what is named, and nothing else.

        Parameters
        ----------
        subject : estimator, array-like, Difference, or a list of them
            As for :meth:`evaluate`; models are fitted.
        at_least : float, or sequence of float
            What it must reach, in the metric's unit; of a difference how much better the new one must be.
        tolerance : float, optional
            Where the rows' evidence decides: how far below what is named the value of what is accepted may be.
        guardrails : dict of guard to float or (subject, float), optional
            Guards that :meth:`on` gave for other metrics of the rows, and what each must reach, too; with a subject of
            its own where the metric needs other predictions. One charge for all; each takes one of the declared
            queries.
        name, X_train
            As for :meth:`evaluate`.

        Returns
        -------
        Answer, or list of Answer
            Its outcome is "better", a charge, or "not shown".
        """
        return self._one(
            Question(
                "gate",
                subject,
                at_least,
                tolerance,
                guardrails=guardrails,
                name=_named(subject, name),
                X_train=X_train,
            )
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

        It costs its surprise and no charge: about 1.5 nats where the prior is near.

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
            If the input does not fit, or the dearest cell would break a promise of the plan; nothing was told.
        Halted, ModelError
            As for :meth:`evaluate`; a failure takes no charge, but costs nats.

        Examples
        --------
        >>> import numpy as np
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=2, seed=1)
        >>> answer = guard.reveal(np.where(np.arange(10_000) % 10, labels, 1 - labels), prior=0.9)
        >>> answer.outcome, answer.charged, round(answer.nats, 1), answer.low < 0.9 < answer.high
        ('revealed', False, 1.3, True)
        """
        subject, prior, X_train = self._ready(subject, prior, X_train, y_train, cv)
        return self._one(Question("reveal", subject, prior, name=_named(subject, name), X_train=X_train))

    @checked_call
    def choose(self, subjects: Sequence[Any], priors: Any, *, name: str = "", X_train: Any = None) -> Choice:
        """Ask which of several is best by the holdout, and for its value, rounded.

        It costs its surprise and no charge: about 3 nats where the prior's favourite wins. Each candidate is one of the
        declared queries.

        Parameters
        ----------
        subjects : list of estimator or array-like
            Fitted models, or predictions.
        priors : sequence of float
            The analyst's own estimates, one for each.
        name : str
            What history calls the question.
        X_train : array-like, optional
            What the models were trained on.

        Returns
        -------
        Choice

        Raises
        ------
        BudgetError
            If there are more candidates than queries left; nothing was told.
        InputError
            If the input does not fit, or the dearest outcome would break a promise of the plan; nothing was told.
        Halted
            If a budget has run out and the question is new.
        ModelError
            If a candidate fails on the holdout: no value is told, and the message names the best of the others.
        """
        choice: Choice = self._one(Question("choose", subjects, priors, name=name, X_train=X_train))
        return choice

    @checked_call
    def final(self, subject: Any, *, name: Any = None, also: Sequence[Any] = ()) -> Any:
        """Ask for the certified end of a project: the holdout's own value, with the narrowest interval.

        Once: nothing new is answered afterwards, though what was asked replays free. Allowed after a halt.

        Parameters
        ----------
        subject : estimator, array-like, or a list of them
            Fitted models, or predictions. Several are certified together, each a little wider.
        name : str, optional
            What history calls it; by default the model's type.
        also : sequence of guards, or of tuples of a guard and a subject, optional
            Other metrics of the rows, from :meth:`on`, that are certified with it; with a subject of its own where a
            metric needs other predictions.

        Returns
        -------
        Answer, or list of Answer
            Of one subject, or of several; with `also`, of this metric and then of the others.

        Raises
        ------
        Halted
            If a final was given before.
        InputError
            If the input does not fit; nothing was told.
        ModelError
            If a model fails on the holdout: the final was given, and tells that.

        Examples
        --------
        >>> import numpy as np
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=2, seed=1)
        >>> last = guard.final(np.where(np.arange(10_000) % 10, labels, 1 - labels))
        >>> last.value, last.outcome, round((last.high - last.low) / 2, 3)
        (0.9, 'final', 0.008)
        """
        if isinstance(also, str | ReusableHoldout) or not isinstance(also, Iterable):
            raise InputError(
                "also= must be a list of guards from on(), or of tuples of one and a subject; got "
                f"{type(also).__name__}; nothing was told"
            )
        pairs = [one if isinstance(one, tuple) and len(one) == 2 else (one, subject) for one in also]
        label = _named(subject, name)
        questions = [Question("final", subject, name=label)]
        questions += [Question("final", own, view=guard, name=label) for guard, own in pairs]
        found = self.ask(questions)
        flat = [answer for each in found for answer in (each if isinstance(each, list) else [each])]
        _raise_failures(flat)
        return flat if also else found[0]

    def _one(self, question: Question) -> Any:
        """Ask one question; raise what failed."""
        (found,) = self.ask([question])
        _raise_failures(found if isinstance(found, list) else [found])
        return found

    def _ready(self, subject: Any, prior: Any, X_train: Any, y_train: Any, cv: Any) -> tuple[Any, Any, Any]:
        """Return models that are fitted, their prior, and what they were trained on; predictions as they are."""
        parts = list(subject) if isinstance(subject, Difference) else [subject]
        if not all(is_model(part) and not isinstance(part, Measured) for part in parts):
            return subject, prior, X_train
        X_train, y_train = training_rows(X_train, y_train)
        parts = [fitted(part, X_train, y_train) for part in parts]
        if prior is None or isinstance(prior, str):
            method: Any = "cross-validation" if prior is None else prior
            each = [self._estimate(part, X_train, y_train, method=method, cv=cv) for part in parts]
            prior = each[0] - each[1] if len(each) > 1 else each[0]
        return Difference(*parts) if isinstance(subject, Difference) else parts[0], prior, X_train

    def _estimate(self, model: Any, X_train: Any, y_train: Any, *, method: PriorMethod, cv: Any) -> float:
        check_prior_method(method)
        if X_train is None or y_train is None:
            raise InputError(
                "a prior must be stated, or come from X_train and y_train; got neither; pass prior=, your own estimate "
                "of the score, such as a cross-validated one; nothing was asked"
            )
        return training_estimate(
            self.metric, model, X_train, y_train, method=method, cv=cv, classes=self.class_set
        )

    @sealed
    def check_predictions(self, predictions: Any) -> None:
        """Refuse predictions that no question takes; nothing is asked, and what fits tells nothing.

        Whether they fit depends on what is public of the rows: their number, their classes, their ids, and the labels
        of their pandas index, if `X` or `y` has one, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes) or (rows, repeats)

        Raises
        ------
        InputError
            If they do not fit.
        """
        self._view.holdout.bound.prepare(predictions)

    # ---- other metrics, other rows

    @sealed
    def on(
        self,
        metric: str | Metric | None = None,
        *,
        where: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        tolerance: float | None = None,
        estimate: float | None = None,
        prior_error: float | None = None,
        spread: float | None = None,
        prevalence: Any = None,
        allow: Iterable[str] = (),
        name: str | None = None,
    ) -> Self:
        """Ask about another metric of the same rows, or a slice of them, on the same budget.

        Queries, charges and confidence are the guard's, and all that is told anywhere widens everything. What is not
        named is as here. The same metric and weights give the same view again, in all processes.

        Parameters
        ----------
        metric : str or Metric, optional
        where : array-like of bool of shape (rows,), optional
            Public mask of a slice, such as ``X["sex"] == "F"``.
        sample_weight : array-like of shape (rows,), optional
            Public weights, in place of a mask.
        tolerance : float, optional
            In the metric's unit; by default the smallest one that can be kept, whatever the guard's plan allows to be
            told.
        estimate, prior_error, spread : float, optional
            As for :class:`Plan`; of another metric, nothing is known of them by default.
        prevalence : float, sequence of float or dict, optional
            As for :class:`Rows`. Class counts that a metric rests on are told when it is first asked for, and cost up
            to 5 nats.
        allow : set of str
            "vacuous" opens it though its plan says nothing.
        name : str, optional
            What history calls it.

        Returns
        -------
        ReusableHoldout

        Raises
        ------
        PlanError
            If the tolerance cannot be kept, or the plan is vacuous, at the class shares that you expect; `nearest` says
            which can. What was opened before is opened again.
        InputError
            If rows and metric do not fit, or what must be told of the class counts could break a promise of the plan.
        LedgerMismatchError
            If it was opened with another tolerance.
        Halted
            If a final was given.

        Warns
        -----
        KeptLessWarning
            If the class counts, once they were told, keep less than was wished: it was opened all the same.

        Notes
        -----
        That a slice has rows of one class only, or a target beyond the metric's bounds, is a fact about the labels:
        such a metric is given, and fails when it is asked, which takes a charge.

        Examples
        --------
        >>> import numpy as np
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=5, estimate=0.9, seed=1)
        >>> first_half = guard.on(where=np.arange(10_000) < 5_000)
        >>> first_half.evaluate(labels, prior=0.99).charges_left
        5
        >>> guard.queries_asked
        1
        """
        view, chosen = self._view, self.metric if metric is None else resolve_metric(metric)
        if where is not None and sample_weight is not None:
            raise InputError(
                "a slice is named by a mask or by weights; got where= and sample_weight=; pass one"
            )
        weights = where if where is not None else sample_weight
        same, counts = chosen == self.metric, view.facts.counts
        guessed = self.plan.stated_spread if same and self.plan.family != "ratio" else None
        shares = counts.guessed if same and counts is not None else None
        asked = Opening(
            metric=chosen,
            sample_weight=view.holdout.sample_weight if weights is None else weights,
            tolerance=tolerance,
            estimate=self.plan.estimate if same and estimate is None else estimate,
            prior_error=self.plan.stated_prior_error if same and prior_error is None else prior_error,
            spread=guessed if spread is None else spread,
            prevalence=shares if prevalence is None else prevalence,
            vacuous="vacuous" in allowed_of(allow),
            name=name,
            root=view.root,
        )
        found = asked.open()
        return self if found is view else type(self)._of(found)

    @sealed
    def rotate(
        self,
        X: Any,
        y: Any = None,
        *,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        estimate: float | None = None,
        allow: Iterable[str] = (),
        early: bool = False,
    ) -> Rotation:
        """Go on with a fresh holdout in the same ledger, and release this one for training.

        The new guard has a budget and noise of its own and promises what this one did, at its own confidence. This one
        answers nothing new any more, in any process; its history stays in the ledger.

        Parameters
        ----------
        X, y : array-like, or Rows
            The new holdout: rows of the same population that neither an epoch before nor any training has used. They
            are compared with those of every epoch before, row by row. Classes and prevalence are as before unless they
            are named; groups and ids are needed if the old rows had some.
        queries, tolerance, charges, estimate
            Of the new plan. The tolerance stays as it is and the charges follow from it, unless one of them is named.
        allow : set of str
            As for :class:`ReusableHoldout`.
        early : bool
            Whether to rotate though the guard has not halted: what is left of its budget is lost.

        Returns
        -------
        Rotation
            The new `guard`, and `X` and `y` of this one.

        Raises
        ------
        InputError
            If the guard has not halted, or the new holdout is one that was used before.
        OverlapError
            If rows of it were used before or trained on: by ids one of them, by features more than chance explains;
            nothing was released.
        PlanError
            If as many new rows, of the class shares that are expected, cannot keep the promise, or it is vacuous;
            nothing was released.
        RotatedError
            If another process has rotated already.

        Warns
        -----
        KeptLessWarning
            If the new rows' class counts, once they were told, keep less than that: it was rotated all the same.

        Notes
        -----
        The new holdout must be drawn independently of everything released and of the old rows; then its intervals hold
        whatever was learnt in the epochs before. Each epoch has a failure probability of its own.
        """
        if not early and not self.halted:
            raise InputError(
                f"a guard is rotated when it has halted; this one has {self.charges_left} charges and "
                f"{self.queries_left:,} queries left; nothing was released; pass early=True to give them up"
            )
        if self._view.root is not self._view:
            raise InputError(
                "rows are rotated by the guard that was made with them; this one is about another metric or slice; "
                "nothing was released; rotate the first, and ask it for this one with on()"
            )
        stated = Stated(
            queries=queries,
            tolerance=tolerance,
            charges=charges,
            estimate=estimate,
            allow=allowed_of(allow),
        )
        fresh = type(self)._of(making.rotated(self._view, _rows(X, y), stated))
        return Rotation(fresh, self._view.holdout.X, self._view.holdout.y)

    # ---- life

    @checked_call
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the new answers after each commit; returns a function that ends it.

        What it raises becomes a warning: the answers are released already.
        """
        listeners = self._view.listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def close(self) -> None:
        """Close the ledger; the guard can be opened again."""
        self._view.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self  # one budget: a copy that counted for itself would double it

    def __deepcopy__(self, _: object) -> Self:
        return self


def _rows(X: Any, y: Any) -> Rows:
    if isinstance(X, Rows):
        if y is not None:
            raise InputError("Rows hold the labels; got y, too; nothing was made; leave it out")
        return X
    return Rows(X, y)


def _named(subject: Any, name: Any) -> Any:
    """Return what history calls a question: what was said, or the types of models."""
    if name is not None:
        return name
    if isinstance(subject, Difference):
        both = [type(part).__name__ if is_model(part) else "" for part in subject]
        return " less ".join(both) if all(both) else ""
    if is_several(subject):
        return [_named(one, None) for one in subject]
    model = subject.model if isinstance(subject, Measured) else subject
    return type(model).__name__ if is_model(model) else ""


def _raise_failures(found: Sequence[Any]) -> None:
    """Raise what failed: of one question its own error, of several one with all answers."""
    failures = [one for one in found if isinstance(one, ModelError)]
    if not failures:
        return
    if len(found) == 1:
        raise failures[0]
    raise ModelError(
        f"the model or metric failed on the holdout for {len(failures)} of {len(found)} entries; its words are "
        "withheld, for they may quote the holdout; each failure is a fact about the holdout and is paid for, once; all "
        "others were answered: see `answers` of this error, None for what failed, and history()",
        [None if isinstance(one, ModelError) else one for one in found],
    )
