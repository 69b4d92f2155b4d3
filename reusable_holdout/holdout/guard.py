"""The guard: one holdout, one metric, one budget."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

from reusable_holdout.errors import Halted, HandleError, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout.holdout.boundary import attempt, sealed
from reusable_holdout.holdout.configuration import Configuration, metric_of
from reusable_holdout.holdout.content import ContentKey
from reusable_holdout.holdout.handle import Handle, write_private
from reusable_holdout.holdout.inputs import PrivateData, checked_names
from reusable_holdout.holdout.keys import find_key
from reusable_holdout.holdout.models import check_model, fitted, predictions_of, training_estimate
from reusable_holdout.holdout.policies import POLICIES, make_policy
from reusable_holdout.holdout.transcript import Transcript
from reusable_holdout.ledger import MemoryLedger, SqlLedger, key_commitment
from reusable_holdout.mechanisms import KeyedNoise
from reusable_holdout.plan import Plan
from reusable_holdout.queries import Metric, resolve_metric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.holdout.answer import Answer
    from reusable_holdout.holdout.models import PriorMethod
    from reusable_holdout.holdout.thresholdout import Asked, HaltReason, State
    from reusable_holdout.ledger import Ledger
    from reusable_holdout.plan import MechanismChoice
    from reusable_holdout.validity import Policy

    Listener = Callable[[Sequence[Answer]], None]

__all__ = ["ReusableHoldout"]


class ReusableHoldout:
    """A holdout that can be asked again and again, because it answers only what it can afford.

    With probability `confidence`, the intervals of all answers together contain the population values, however the
    questions were chosen; and what is released is (epsilon, delta)-differentially private as the plan says.

    Parameters
    ----------
    X : array-like of shape (rows, features) or None
        Private features, for :meth:`evaluate`; NumPy, pandas, polars or scipy.sparse.
    y : array-like of shape (rows,)
        Private labels. Rows must be independent draws from the population of interest and no training rows.
    metric : str or Metric
        A name of the catalogue, or a metric of your own.
    queries : int
        Questions K that will be asked at most.
    tolerance : float, optional
        How far an answer may be from the population value; the budget follows from it.
    policy : {"thresholdout", "ladder", "guess-and-check", "gate"}
        What a question is compared with, and what is told. Thresholdout: the analyst's prior, corrected when the
        holdout deviates from it. Ladder: the best score so far, raised when the score improves on it by the threshold.
        Guess-and-check: Thresholdout with a tolerance for each question. Gate: whether the score is at least the prior,
        and nothing else; "yes" is a charge.
    charges : int, optional
        Deviations to pay for, in place of `tolerance`.
    threshold, noise_scale, resolution, confidence, estimate, delta, mechanism
        As for :class:`Plan`. `estimate`, the score that is expected, buys the most.
    ledger : str, Path or None
        SQLite file or SQLAlchemy URL that holds the budget, shared by all processes; None keeps it in memory, for this
        process alone.
    key : bytes or Path, optional
        Noise key of 32 bytes, or the file it lies in; by default ``<ledger>.key``, made with mode 0600. Whoever has the
        key can undo the noise.
    seed : int, optional
        Makes the key from a number, so that runs can be repeated. Whoever knows the seed has the key.
    classes : array-like, optional
        All classes that may occur; by default those in `y`.
    sample_weight : array-like of shape (rows,), optional
        Public weights, at least 0. Weights of 0 and 1 make a slice, such as ``group == "A"``: then the answers are
        about this group, and only its rows count.

    Attributes
    ----------
    plan : Plan
    metric : Metric
    policy : str

    Raises
    ------
    PlanError
        If no plan keeps the wish.
    InputError
        If data and metric do not fit.
    LedgerMismatchError, LedgerKeyError, LedgerError
        If the ledger belongs to something else, its key is missing, or it cannot be used.

    Notes
    -----
    Making a guard on a ledger that has one resumes it: the same holdout and settings continue the same budget, others
    are refused. The set of classes is public, and for class-conditional metrics so are their counts. The guard protects
    against conclusions, not against code that runs in its process and looks at its memory.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout: Preserving validity in adaptive
       data analysis", Science 349.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.random.default_rng(0).integers(0, 2, 10_000)
    >>> guard = ReusableHoldout(None, labels, metric="accuracy", tolerance=0.05, queries=1_000, seed=1)
    >>> answer = guard.evaluate_predictions(labels, prior=1.0)
    >>> answer.value, answer.charged, answer.query
    (1.0, False, 1)
    >>> guard.evaluate_predictions(labels, prior=1.0).replayed
    True
    """

    @sealed
    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        metric: str | Metric = "accuracy",
        queries: int,
        tolerance: float | None = None,
        charges: int | None = None,
        threshold: float | None = None,
        noise_scale: float | None = None,
        resolution: float | None = None,
        confidence: float = 0.95,
        estimate: float | None = None,
        delta: float | None = None,
        mechanism: MechanismChoice = "numeric-sparse",
        policy: Policy = "thresholdout",
        ledger: str | Path | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        bound = resolve_metric(metric).bind(y, classes=classes, sample_weight=sample_weight)
        plan = Plan(
            rows=bound.effective_rows,
            queries=queries,
            tolerance=tolerance,
            charges=charges,
            threshold=threshold,
            noise_scale=noise_scale,
            resolution=resolution,
            confidence=confidence,
            estimate=estimate,
            delta=delta,
            mechanism=mechanism,
            bounds=(bound.metric.lower, bound.metric.upper),
            family=bound.family,
            influence=float(bound.sensitivity * bound.effective_rows),
            variation=bound.sum_of_squares * bound.effective_rows,
        )
        if policy not in POLICIES:
            raise InputError(f"policy is one of {', '.join(POLICIES)}; got {policy!r}")
        store = MemoryLedger() if ledger is None else SqlLedger(ledger)
        data = PrivateData(X, y, bound, classes, sample_weight)
        self._begin(data, plan, store, policy=policy, key=key, seed=seed)

    @classmethod
    @sealed
    def open(
        cls,
        ledger: str | Path,
        X: Any,
        y: Any,
        *,
        metric: str | Metric | None = None,
        key: bytes | Path | None = None,
        seed: int | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Resume a guard from its ledger; nothing is refilled.

        Parameters
        ----------
        ledger : str or Path
            SQLite file or URL of an existing ledger.
        X, y, key, seed, classes, sample_weight
            The same as when it was made.
        metric : Metric, optional
            Needed for a metric of your own only.

        Raises
        ------
        LedgerError
            If there is no such ledger.
        LedgerMismatchError, LedgerKeyError
            If it belongs to other data, or its key is missing.
        """
        guard = cls.__new__(cls)
        guard._resume(
            ledger, X, y, metric=metric, key=key, seed=seed, classes=classes, sample_weight=sample_weight
        )
        return guard

    def _resume(
        self,
        ledger: str | Path,
        X: Any,
        y: Any,
        *,
        metric: str | Metric | None,
        key: bytes | Path | None,
        seed: int | None,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> None:
        store = SqlLedger(ledger, must_exist=True)
        stored = store.configuration()
        if stored is None:
            raise LedgerError(f"{ledger} holds no guard yet; make one with ReusableHoldout(X, y, ledger=...)")
        configuration = Configuration.parse(stored)
        chosen = metric_of(configuration.metric) if metric is None else resolve_metric(metric)
        known = configuration.classes if classes is None else classes
        bound = chosen.bind(y, classes=known, sample_weight=sample_weight)
        plan = Plan.from_record(configuration.plan)
        data = PrivateData(X, y, bound, classes, sample_weight)
        self._begin(data, plan, store, policy=configuration.policy, key=key, seed=seed)

    def _begin(
        self,
        holdout: PrivateData,
        plan: Plan,
        ledger: Ledger,
        *,
        policy: Policy,
        key: bytes | Path | None,
        seed: int | None,
    ) -> None:
        secret, self._key_file = find_key(ledger, key=key, seed=seed)
        content = ContentKey(secret)
        metric = holdout.bound.metric
        configuration = Configuration(
            plan=plan.record(),
            metric=holdout.bound.describe(),
            holdout=content.holdout(holdout.X, holdout.y),
            key=key_commitment(secret),
            classes=None if holdout.bound.classes is None else holdout.bound.classes.tolist(),
            policy=policy,
        )
        stored = Configuration.parse(ledger.create(configuration.text()))
        configuration.check_same(stored)
        self.plan, self.metric, self.policy = plan, metric, policy
        self._holdout, self._content, self._ledger = holdout, content, ledger
        self._policy = make_policy(
            policy, plan.certificate(greater_is_better=metric.greater_is_better), KeyedNoise(secret)
        )
        self._transcript = Transcript(self._policy, ledger)
        self._listeners: list[Listener] = []
        self._handle: Handle | None = None

    # ---- questions

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
    ) -> Answer:
        """Ask how good a model really is.

        Parameters
        ----------
        model : estimator
            Fitted; or not, and then a clone is fitted on the training data.
        X_train, y_train : array-like, optional
            Training data, disjoint from the holdout; needed unless a prior is stated.
        prior : float, "cross-validation" or "in-sample", optional
            The analyst's own estimate, by default cross-validated. Stated as a number, it is taken as given. A bad
            prior costs charges, never validity. A gate's must be stated; a ladder has its own.
        tolerance : float, optional
            For guess-and-check: how far the answer may be from the population value; the guard's by default.
        cv : int or cross-validation splitter
            Folds of the cross-validated prior.
        name : str, optional
            What history calls the question; by default the model's type.

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
            If the input does not fit; nothing was asked and nothing was charged.
        ModelError
            If the model fails on the holdout. That it does is a fact about the holdout: it takes a charge.
        """
        if self._holdout.X is None:
            raise InputError("this guard holds labels only; ask with evaluate_predictions, or give it X")
        ready = fitted(model, X_train, y_train)
        stated = prior
        if stated is None and self.policy in {"thresholdout", "guess-and-check"}:
            stated = "cross-validation"
        if isinstance(stated, str):
            if X_train is None or y_train is None:
                raise InputError(
                    "a prior must be stated, or come from X_train and y_train; got neither; pass prior="
                )
            stated = training_estimate(
                self.metric,
                ready,
                X_train,
                y_train,
                method=stated,
                cv=cv,
                classes=self._holdout.bound.classes,
            )
        return self._evaluate_model(ready, stated, tolerance, type(model).__name__ if name is None else name)

    @sealed
    def _evaluate_model(self, model: Any, prior: float | None, tolerance: float | None, name: str) -> Answer:
        holdout, bound = self._holdout, self._holdout.bound
        check_model(model, holdout.X, response=self.metric.response, classes=bound.classes)
        asked = self._policy.asked(prior, tolerance, self.metric)
        question = self._content.model_question(model, asked.unit)
        prepared = attempt(
            lambda: bound.prepare(
                predictions_of(model, holdout.copied(), response=self.metric.response, classes=bound.classes)
            )
        )
        return self._ask(prepared, asked, question, name)

    @sealed
    def evaluate_predictions(
        self,
        predictions: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: str = "",
    ) -> Answer:
        """Ask about predictions for the holdout's rows, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes)
            Labels, probabilities, scores or values, as the metric needs.
        prior : float
            The analyst's own estimate of the score, in the metric's unit and within its bounds; left out for a ladder.
        tolerance : float, optional
            For guess-and-check: how far the answer may be from the population value; the guard's by default.
        name : str
            What history calls the question.

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
        asked = self._policy.asked(prior, tolerance, self.metric)
        prepared = self._holdout.bound.prepare(predictions)
        question = self._content.question(prepared, asked.unit)
        return self._ask(prepared, asked, question, name)

    @sealed
    def evaluate_many(
        self,
        predictions: Any,
        priors: ArrayLike | None = None,
        *,
        tolerances: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> list[Answer]:
        """Ask a batch: cheaper than one by one, and tighter, for all of it shares the history before it.

        Parameters
        ----------
        predictions : array-like of shape (queries, rows) or list of arrays
            One question per entry.
        priors : array-like of shape (queries,)
            The analyst's own estimates; left out for a ladder.
        tolerances : array-like of shape (queries,), optional
            For guess-and-check.
        names : sequence of str, optional
            What history calls the questions.

        Returns
        -------
        list of Answer
            In the order of the questions; repeated questions are replays.

        Raises
        ------
        Halted
            If a budget runs out on the way; the answers before that are in its `answers` and stay valid.
        BudgetError
            If more is asked than queries are left; nothing was answered and nothing was charged.
        InputError
            If one question does not fit; nothing was asked and nothing was charged.
        """
        bound = self._holdout.bound
        prepared = bound.prepare_many(predictions)
        stated, limits, units = self._policy.asked_many(priors, tolerances, len(prepared), self.metric)
        labels = checked_names(names, len(prepared))
        questions = self._content.questions(prepared, units)
        scores = self._score(prepared)
        failure = self._content.failed_batch(questions) if scores is None else None
        try:
            answers = self._transcript.ask_many(
                scores, stated, questions, labels, failure=failure, tolerances=limits
            )
        except Halted as halt:
            self._tell([answer for answer in halt.answers if not answer.replayed])
            raise
        self._tell([answer for answer in answers if not answer.replayed])
        return answers

    def _ask(self, prepared: NDArray[Any] | None, asked: Asked, question: bytes, name: str) -> Answer:
        """Ask with predictions, or with None if the model failed to make them."""
        (label,) = checked_names([name], 1)
        score = None if prepared is None else self._score(prepared[None])
        answer = self._transcript.ask(
            None if score is None else int(score[0]), asked.prior, question, label, asked.tolerance
        )
        if not answer.replayed and self._listeners:
            self._tell([answer])
        return answer

    def _score(self, prepared: NDArray[Any]) -> NDArray[np.int64] | None:
        """Scores on the grid, or None if a metric of the user's own fails on the holdout."""
        try:
            return self._holdout.bound.score(prepared)
        except ModelError:
            return None

    # ---- what was released

    @sealed
    def history(self) -> pd.DataFrame:
        """Everything released, in order.

        Returns
        -------
        pandas.DataFrame
            Columns query, name, prior, value, charged, low, high, threshold, charges_left, asked_at (UTC).
        """
        return self._transcript.history()

    @sealed
    def plot(self, ax: Any = None) -> Any:
        """Draw priors against answers with their intervals, charges, and the budget left.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from reusable_holdout.plotting import plot_history  # noqa: PLC0415 - matplotlib is optional

        return plot_history(self.history(), charges=self.plan.charges, metric=self.metric.name, ax=ax)

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, which are public; None for metrics of real values."""
        return self._holdout.bound.classes

    @property
    def queries_asked(self) -> int:
        """Different questions answered so far, by all processes."""
        return self._state().query

    @property
    def charges_left(self) -> int:
        """Charges still affordable; at 0 the guard has halted."""
        state = self._state()
        return self._policy.charges_left(state.charges, state.nats)

    @property
    def halted(self) -> bool:
        """Whether nothing new will be answered any more."""
        return self.halt_reason is not None

    @property
    def halt_reason(self) -> HaltReason | None:
        """Which budget has run out: "charges", "code" or "queries"; None while there is some left."""
        return self._policy.halt_reason(self._state())

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._ledger.closed

    @property
    def ledger(self) -> str | None:
        """URL of the ledger; None if it is in memory."""
        return self._ledger.url

    @sealed
    def _state(self) -> State:
        return self._transcript.state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the new answers after each commit; returns a function that ends it.

        What it raises becomes a warning: the answers are released already.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _tell(self, answers: Sequence[Answer]) -> None:
        if not answers:
            return
        for listener in list(self._listeners):
            try:
                listener(answers)
            except Exception as error:
                warnings.warn(
                    f"a listener of the guard raised {type(error).__name__}: {error}; the answer is in history()",
                    RuntimeWarning,
                    stacklevel=4,
                )

    # ---- life

    def close(self) -> None:
        """Close the ledger; the guard can be opened again."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        about = f"{self.metric.name}, {self._holdout.bound.rows:,} rows"
        try:
            state = self._state()
        except HoldoutError:
            return f"<ReusableHoldout: {about}, closed>"
        left = self._policy.charges_left(state.charges, state.nats)
        return (
            f"<ReusableHoldout: {about}, {state.query:,} of {self.plan.queries:,} queries asked, "
            f"{left} of {self.plan.charges} charges left>"
        )

    def __copy__(self) -> Self:
        return self  # one budget: a copy that counted for itself would double it

    def __deepcopy__(self, _: object) -> Self:
        return self

    @sealed
    def __reduce__(self) -> tuple[Any, ...]:
        if self._handle is None:
            self._handle = self._make_handle()
        return Handle.open, (self._handle,)

    def _make_handle(self) -> Handle:
        path = self._ledger.path
        if path is None:
            raise HandleError(
                "a guard that goes to other processes must keep its budget where they can share it; this one keeps it "
                'in memory or on a server; give it a file: ReusableHoldout(..., ledger="guard.db")'
            )
        if self._key_file is None:
            raise HandleError(
                "a guard that goes to other processes must have its key in a file; this one was given bytes; pass "
                "key=Path(...)"
            )
        holdout_file = path.with_name(path.name + ".holdout")
        holdout = self._holdout
        write_private(
            holdout_file,
            {
                "X": holdout.X,
                "y": holdout.y,
                "metric": self.metric,
                "classes": holdout.classes,
                "sample_weight": holdout.sample_weight,
            },
        )
        return Handle(str(path), str(self._key_file), str(holdout_file))
