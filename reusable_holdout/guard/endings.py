"""How an epoch ends: with the final, the certified end of a project, and with the next holdout in the same ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard import class_counts, epochs
from reusable_holdout.guard import overlap as overlapping
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.answered import Query
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.kinds.stated import checked_names, listed
from reusable_holdout.guard.known_rows import Overlap
from reusable_holdout.guard.models import fitted
from reusable_holdout.guard.overview import Overview
from reusable_holdout.guard.pricing import Wanted, guessed
from reusable_holdout.guard.standing import Standing, check_may_stand, looked_through
from reusable_holdout.guard.stores import budgeted, told_of
from reusable_holdout.ledger import Ledger
from reusable_holdout.plan import Plan, renewal
from reusable_holdout.slips import checked_call

__all__ = ["Finals", "Rotating", "Rotation"]

_GuardT = TypeVar("_GuardT")


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
        guards, asked = [self, *self._others_of_rows(also)], []
        for model, label in zip(models, checked_names(names, len(names)), strict=True):
            for guard in guards:
                question = Query(guard._model_question(model, 0, b"final"), label)
                asked.append((guard, partial(guard._holdout.predicted, model), question))
        return self._finished(asked, models)

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
        prepared, asked = [(guard, guard._holdout.bound.prepare_many(each)) for guard, each in own], []
        for place in range(len(given)):
            for guard, ready in prepared:
                question = Query(guard._content.question(ready[place], 0, b"final"), label)
                asked.append((guard, partial(np.asarray, ready[place]), question))
        answers = self._finished(asked)
        return answers if several or also else answers[0]

    def _finished(
        self,
        asked: Sequence[tuple[Asking, Callable[[], NDArray[Any] | None], Query]],
        models: Sequence[Any] = (),
    ) -> list[Answer]:
        """Tell the scores of predictions, which are made when they are taken: not after another final."""
        guards, questions = [guard for guard, _, _ in asked], [question for _, _, question in asked]
        if len({question.digest for question in questions}) < len(asked):
            raise InputError(
                "a final is of different models; two are the same; nothing was told; name each once"
            )
        ended = self._ways.final.halt_reason(self._transcript.state) is not None
        for guard in {} if ended else dict.fromkeys(guards):
            guard._holdout.try_out(models)
        scores = [
            None if ended else guard._sampled(guard._ways.final, predicted()) for guard, predicted, _ in asked
        ]
        answers = self._transcript.final([guard._ways.final for guard in guards], scores, questions)
        given = [answer for answer in answers if answer is not None]
        for guard in dict.fromkeys(guards):
            guard._tell(
                [answer for one, answer in zip(guards, answers, strict=True) if one is guard and answer]
            )
        if len(given) < len(answers):
            raise ModelError(
                f"{len(answers) - len(given)} of {len(answers)} models or metrics failed on the holdout; their words "
                "are withheld, for they may quote the holdout; the final was given, and tells that; what it tells of "
                "the others is in `answers` of this error, and in history()",
                answers,
            )
        return given


# ---- the next holdout


class Rotation(NamedTuple, Generic[_GuardT]):
    """What a rotation gives: the guard of the new holdout, and the old holdout, which protects nothing any more.

    Attributes
    ----------
    guard : ReusableHoldout
        Of the new holdout.
    X, y : array-like
        The old holdout, free to be trained on.
    """

    guard: _GuardT
    X: Any
    y: Any


def _check_may_rotate(guard: Rotating, *, early: bool, grouped: bool) -> None:
    """Refuse to release a holdout that still answers, or is another guard's; or rows without the groups these had."""
    if not early and not guard.halted:
        raise InputError(
            f"a guard is rotated when it has halted; this one has {guard.charges_left} charges and "
            f"{guard.queries_left:,} queries left; nothing was released; pass early=True to give "
            "them up"
        )
    if guard._root is not guard:
        raise InputError(
            "rows are rotated by the guard that was made with them; this one is about another metric, slice or "
            "policy; nothing was released; rotate the first, and ask it for this one with on()"
        )
    if not grouped and guard._holdout.groups is not None:
        raise InputError(
            "the next rows must come with groups, as these did; got none; nothing was released; pass groups="
        )


def _begin_epoch(ledger: Ledger, configuration: Configuration, known_rows: bytes) -> None:
    """End the epoch a ledger stands at, and begin the next, of rows that no epoch had; all or nothing."""
    for number, text in enumerate(ledger.configurations(), start=1):
        if Configuration.parse(text).holdout == configuration.holdout:
            raise InputError(
                f"a new holdout must be rows that were not used before; these are the rows of epoch {number}; nothing "
                "was released; pass fresh rows"
            )
    with ledger.transaction() as transaction:
        epochs.begin_epoch(ledger, transaction, configuration, known_rows)


class Rotating(Standing, Overview):
    """A guard that goes on with the next holdout."""

    @sealed
    def rotate(
        self,
        X: Any,
        y: Any,
        *,
        queries: int | None = None,
        tolerance: float | None = None,
        charges: int | None = None,
        estimate: float | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        prevalence: Any = None,
        training: Any = None,
        ids: ArrayLike | None = None,
        overlap: Overlap = "refuse",
        vacuous: bool = False,
        another_budget: bool = False,
        early: bool = False,
    ) -> Rotation[Self]:
        """Go on with a fresh holdout in the same ledger, and release this one for training.

        The new guard has a budget and noise of its own and promises what this one did, at its own confidence. This one
        answers nothing new any more, in any process; its history stays in the ledger.

        Parameters
        ----------
        X, y : array-like
            The new holdout: rows of the same population that neither an epoch before nor any training has used. They
            are compared with those of every epoch before, row by row.
        queries, tolerance, charges, estimate
            Of the new plan. The tolerance stays as it is and the charges follow from it, unless one of them is named.
        classes : array-like, optional
            By default the same as now.
        sample_weight : array-like of shape (rows,), optional
            Weights of the new rows.
        groups : array-like of shape (rows,), optional
            Groups of the new rows; needed if those of the old ones had some.
        prevalence : float, sequence of float or dict, optional
            By default the same guess as before.
        training : array-like, optional
            As for :class:`ReusableHoldout`; the rows that are released belong to it.
        ids : array-like of shape (rows,), optional
            Names of the new rows; needed if those of the old ones had some.
        overlap : {"refuse", "allow"}
            Whether to go on though new rows are among `training` or were used before.
        vacuous : bool
            Whether to go on with a plan that says nothing.
        another_budget : bool
            Whether to go on though some of the new rows have a budget: then every answer says so.
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
        _check_may_rotate(self, early=early, grouped=groups is not None)
        holdout = self._like_these(X, y, classes, sample_weight, groups)
        before, by_ratio = self._view.counts, self.plan.family == "ratio"
        expected = before.guessed if prevalence is None and before is not None else prevalence
        guess = guessed(holdout.bound, expected, by_ratio=by_ratio)
        stated = {"queries": queries, "tolerance": tolerance, "charges": charges, "estimate": estimate}

        def planned(numbers: dict[str, Any], told_before: float, **less: Any) -> Plan:
            return renewal.renewed(self.plan, numbers, told_before=told_before, **(stated | less))

        wanted = Wanted(
            holdout.bound,
            guess,
            planned,
            charges=charges,
            estimate=self.plan.estimate if estimate is None else estimate,
            spread=None if by_ratio else self.plan.stated_spread,
        )
        check_may_stand(holdout, wanted.guess, self._ledger.url, vacuous=vacuous)
        rows = looked_through(holdout, ids, training, overlap, nothing="nothing was released")
        kept = overlapping.kept_of_fresh(rows, self._ledger, self._key[0], self._holdout.X)
        with budgeted(holdout, self._ledger, another_budget=another_budget, next_epoch=True) as another:
            counts = class_counts.told(holdout.bound, guess)
            found = wanted.kept(counts, told_of(holdout, counts))
            configuration = replace(
                Configuration.of(found.plan, holdout, self._key[0], counts),
                another_budget=another,
                overlap=overlap,
                witness=Configuration.parse(self._ledger.configuration() or "").witness,
                known_rows=kept.digests,
            )
            _begin_epoch(self._ledger, configuration, kept.text)
        guard = type(self).__new__(type(self))
        guard._begin(holdout, found.plan, counts, self._ledger.latest(), self._key, another_budget=another)
        found.warn(found.plan.shared.told_before, vacuous=vacuous, stacklevel=3)  # rotate, sealed, user
        return Rotation(guard, self._holdout.X, self._holdout.y)

    def _like_these(self, X: Any, y: Any, classes: Any, sample_weight: Any, groups: Any) -> PrivateData:
        """Other rows, with what is public of these unless it is named."""
        holdout = self._holdout
        return PrivateData(
            X,
            y,
            self.metric,
            classes=holdout.bound.class_set if classes is None else classes,
            sample_weight=sample_weight,
            groups=groups,
        )
