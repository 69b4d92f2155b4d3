"""What all ways to ask a guard share: its parts, its scores, and who else is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Policy
from reusable_holdout.errors import Halted, InputError, ModelError
from reusable_holdout.guard import training_estimate as estimating
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.boundary import attempt, sealed
from reusable_holdout.guard.claiming import Pairs
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.kinds import Floats, Integers, Kind, Outcome, State, Terms, samples, scores
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.claims import Claims
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.guard.kinds.scores import Scores
from reusable_holdout.guard.kinds.table import Ways
from reusable_holdout.guard.known_rows import TrainedOn
from reusable_holdout.guard.models import check_model
from reusable_holdout.guard.training_estimate import PriorMethod
from reusable_holdout.guard.transcript import Transcript
from reusable_holdout.guard.views import View
from reusable_holdout.ledger import Ledger
from reusable_holdout.metrics import BoundMetric, Metric
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call

Listener = Callable[[Sequence[Answer]], None]

__all__ = ["Asking", "found_by", "has_most_rows"]

_R = TypeVar("_R")


class Asking:
    """Parts of a guard that its questions need; the guard itself is made, and lives, in its subclass."""

    metric: Metric
    plan: Plan
    policy: Policy
    view: int
    _noise: KeyedNoise
    _view: View
    _ways: Ways
    _holdout: PrivateData
    _content: ContentKey
    _ledger: Ledger
    _transcript: Transcript
    _trained_on: TrainedOn
    _listeners: list[Listener]

    def _estimate(self, model: Any, X_train: Any, y_train: Any, *, method: PriorMethod, cv: Any) -> float:
        estimating.check_prior_method(method)
        if X_train is None or y_train is None:
            raise InputError(
                "a prior must be stated, or come from X_train and y_train; got neither; pass prior=, your own estimate "
                "of the score, such as a cross-validated one; nothing was asked"
            )
        return estimating.training_estimate(
            self.metric, model, X_train, y_train, method=method, cv=cv, classes=self._holdout.bound.class_set
        )

    def _check_models(self, models: Sequence[Any]) -> None:
        """Refuse models that cannot fit, by what is public."""
        holdout = self._holdout
        for model in models:
            check_model(model, holdout.X, response=self.metric.response, classes=holdout.bound.classes)

    def _model_question(self, model: Any, unit: int, person: bytes = b"") -> bytes:
        self._check_models([model])
        return self._content.model_question(fingerprint(model), unit, person)

    def _check_features(self, otherwise: str) -> None:
        if self._holdout.X is None:
            raise InputError(f"this guard holds labels only; ask with {otherwise}, or give it X")

    def _predicted(self, models: Sequence[Any], X_train: Any) -> NDArray[Any] | None:
        """Predictions of one model, or those of two, as several questions have them.

        None if one fails, or was trained on rows of the holdout: one outcome, and nobody is told which. What is refused
        free, by what is public, is refused before either is known.
        """
        self._holdout.try_out(models, X_train)
        held = X_train is not None and self._trained_on.holds(X_train)
        return None if held else self._holdout.predicted_by(models)

    def _scored(
        self, kind: Check, prepared: NDArray[Any] | None, priors: Floats, tolerances: Floats | None
    ) -> Integers | None:
        """What a kind decides on, for each question; None if model or metric fails on the holdout."""
        return found_by(kind.scored, self._holdout.bound, prepared, priors, tolerances)

    def _measured(
        self, kind: Check, prepared: NDArray[Any] | None, prior: float, tolerance: float | None = None
    ) -> Integers | None:
        """The same of one question; of a comparison both predictions are prepared, else one with an axis before it."""
        tolerances = None if tolerance is None else np.array([tolerance])
        found = self._scored(kind, prepared, np.array([prior]), tolerances)
        return None if found is None else found[0]

    def _scored_each(
        self, kind: Check, prepared: NDArray[Any], priors: Floats, tolerances: Floats | None
    ) -> Scores:
        """The same of a batch, each question by itself if the metric is the user's own: it may fail on one of them."""
        if self._holdout.bound.metric.kernel is not None:  # then all of them fail, or none
            found = self._scored(kind, prepared, priors, tolerances)
            failed = np.full(len(prepared), found is None)
            return scores.Scores(np.zeros(len(prepared), np.int64) if found is None else found, failed)
        limits = [None] * len(prepared) if tolerances is None else tolerances.tolist()
        each = zip(prepared, priors.tolist(), limits, strict=True)
        return scores.Scores.of([self._measured(kind, one[None], prior, limit) for one, prior, limit in each])

    def _sampled(self, kind: Kind, prepared: NDArray[Any] | None) -> Sample | int | None:
        """Score of one model or prediction, or the sample that a kind needs; None if it failed."""
        measure: Callable[..., Sample | int] = samples.sample_of if kind.by_sample else _score
        return found_by(measure, self._holdout.bound, prepared)

    def _check_differences(self) -> None:
        """Refuse to compare two models where their difference is no mean over rows."""
        bound = self._holdout.bound
        if not bound.by_rows:
            raise InputError(
                f"two models are compared row by row, by a metric that is a plain mean over rows; {self.metric.name} "
                "is none; nothing was asked; guard the rows with accuracy, a loss, or a mean of your own"
            )

    def _answer(
        self,
        kind: Kind,
        question: Query,
        refuse: Callable[[State], None],
        measure: Callable[[], Any],
        decide: Callable[[Any, State], tuple[Terms, Outcome]],
        *,
        takes: int = 1,
    ) -> Answer:
        """Answer one question, durably, which takes so many of the declared queries.

        `refuse` raises, by public numbers, where it has no room: before the rows are read, and again in the transaction
        that decides. `measure` reads the rows: not for what is refused or replayed, nor after a halt.
        """
        needed = self._transcript.needs_rows(kind, question.digest, refuse)
        found = measure() if needed else None
        return self._transcript.answer(kind, question, refuse, partial(decide, found), takes=takes)

    def _compared(
        self,
        kind: Check,
        query: Query,
        prior: float,
        measure: Callable[[], Integers | None],
        *,
        anew: bool = False,
    ) -> Answer:
        """Ask about one score, which is measured if it comes to that: compare it with a prior, or put it on a board."""
        if kind.on_board:
            own = self._content.claim(query.digest, query.series, kind.grid_unit(prior))
            boards, claims = self._transcript.boards, cast("Claims", kind)
            return self._told(boards.claim(claims, query, own, prior, measure, anew=anew))
        if anew:
            raise InputError(
                "anew= is for a board of claims, where the same predictions are one question, whoever claims what of "
                "them; leave it out; nothing was asked"
            )
        tolerances = None if query.tolerance is None else np.array([query.tolerance])
        refuse = partial(kind.check_room, np.array([prior]), tolerances)
        decide = partial(kind.answer, prior, query.tolerance, query.digest)
        return self._told(self._answer(kind, query, refuse, measure, decide))

    def _told(self, answer: Answer) -> Answer:
        """Tell the listeners of an answer, if it is new."""
        self._tell([answer])
        return answer

    def _told_batch(self, ask: Callable[[], list[Answer | None]]) -> list[Answer | None]:
        """Tell the listeners of a batch's new answers, of those before a halt, too."""
        try:
            answers = ask()
        except Halted as halt:
            self._tell(halt.answers)
            raise
        self._tell(answers)
        return answers

    @sealed
    def check_predictions(self, predictions: Any) -> None:
        """Refuse predictions that no question takes; nothing is asked, and what fits tells nothing.

        Whether they fit depends on what is public of the rows: their number, their classes, their ids,
        and the labels of their pandas index, if `X` or `y` has one, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,), (rows, classes) or (rows, repeats)
            As for :meth:`evaluate_predictions`.

        Raises
        ------
        InputError
            If they do not fit.
        """
        self._holdout.bound.prepare(predictions)

    @sealed
    def pairs(self, beta: float) -> Pairs:
        """Say which of two claims that were answered is better for certain; nothing is asked, nothing is charged.

        Parameters
        ----------
        beta : float
            Failure probability of all pairs together, beside the guard's own: with a `confidence` of .955 and .005 here
            all intervals and all pairs hold together with probability .95.

        Raises
        ------
        InputError
            If the policy is another, the metric no plain mean over all rows, or beta no probability.
        """
        kind, bound = self._ways.policy, self._holdout.bound
        plain = bound.by_rows and bound.groups is None and bound.counted_rows == bound.rows
        if not kind.on_board or not plain or bound.relative_weights is not None:
            raise InputError(
                'pairs are for policy="claims" and means over rows that all count the same; got '
                f"{self.policy} of {self.metric.name}; compare intervals instead"
            )
        return self._transcript.boards.pairs(cast("Claims", kind), beta)

    @checked_call
    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the new answers after each commit; returns a function that ends it.

        What it raises becomes a warning: the answers are released already.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _tell(self, answers: Sequence[Answer | None]) -> None:
        new = [answer for answer in answers if answer is not None and not answer.replayed]
        for listener in list(self._listeners) if new else []:
            try:
                listener(new)
            except Exception as error:
                warnings.warn(
                    f"a listener of the guard raised {type(error).__name__}: {error}; the answer is in history()",
                    RuntimeWarning,
                    stacklevel=4,
                )


@sealed
def has_most_rows(table: Any, guard: Asking) -> bool:
    """Whether a table has more than half of a guard's rows, and more than chance explains; features alone are compared.

    Who makes it true has those rows. Whoever gives it away tells nothing of a row that she lacks, unless she has half
    of the others.
    """
    return guard._trained_on.is_in(table)


def found_by(
    measure: Callable[..., _R], bound: BoundMetric, prepared: NDArray[Any] | None, *stated: Any
) -> _R | None:
    """What is measured of predictions; None if there are none, or a metric of the user's own fails on the rows."""
    if prepared is None:
        return None
    if bound.metric.kernel is None:  # it may raise anything, and warn of what it sees
        return attempt(lambda: measure(bound, prepared, *stated))
    try:
        return measure(bound, prepared, *stated)
    except ModelError:
        return None


def _score(bound: BoundMetric, prepared: NDArray[Any]) -> int:
    return int(bound.score(prepared[None])[0])
