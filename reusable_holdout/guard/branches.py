"""The other guards that a guard can make: for other metrics or slices of the same rows, and for the next holdout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from reusable_holdout.answer import Drift
from reusable_holdout.errors import InputError
from reusable_holdout.guard import creation, extension
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.creation import Stated, allowed_of
from reusable_holdout.guard.new_view import Opening
from reusable_holdout.guard.verbs import Verbs
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.metrics import Metric, resolve_metric
from reusable_holdout.rows import Rows
from reusable_holdout.slips import checked_call


class Rotation(NamedTuple):
    """The result of a rotation: the guard of the new holdout, and the old holdout, which is no longer protected.

    Attributes
    ----------
    guard : ReusableHoldout
        The guard of the new holdout.
    X, y : array-like
        The old holdout, free to be trained on.
    """

    guard: Any
    X: Any
    y: Any


class Branches(Verbs):
    """The methods of a guard that make other guards: for other metrics of the rows, and for other rows."""

    _of: Callable[[GuardedView], Self]

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

        Queries, charges and confidence are shared with the guard, and every release widens the later intervals of all
        views. Settings that are not named are this guard's. The same metric and weights give the same view again, in
        all processes.

        Parameters
        ----------
        metric : str or Metric, optional
        where : array-like of bool of shape (rows,), optional
            Public mask of a slice, such as ``X["sex"] == "F"``.
        sample_weight : array-like of shape (rows,), optional
            Public weights, in place of a mask.
        tolerance : float, optional
            Tolerance in the metric's unit; by default the smallest one that can be kept with all releases that the
            guard's plan allows.
        estimate, prior_error, spread : float, optional
            As for :class:`Plan`; they are not inherited by another metric.
        prevalence : float, sequence of float or dict, optional
            As for :class:`Rows`. If a metric rests on class counts, they are released when it is first opened, for up
            to 5 nats.
        allow : set of str
            "vacuous" opens the view even if its plan is vacuous.
        name : str, optional
            Name of the view in the history.

        Returns
        -------
        ReusableHoldout

        Raises
        ------
        PlanError
            If the tolerance cannot be kept, or the plan is vacuous, at the class shares that you expect; `nearest` has
            numbers that can be kept. This is not raised for a view that was opened before.
        InputError
            If rows and metric do not fit, or if releasing the class counts could break a promise of the plan.
        LedgerMismatchError
            If it was opened with another tolerance.
        Halted
            If a final was given.

        Warns
        -----
        KeptLessWarning
            If the released class counts leave a smaller budget than was wished; the view was opened.

        Notes
        -----
        If a slice has rows of one class only, or a target beyond the metric's bounds, that is a fact about the labels:
        the view is opened all the same, and fails when it is asked, which takes a charge.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=5, estimate=0.9, seed=1)
        >>> first_half = guard.on(where=np.arange(10_000) < 5_000)
        >>> first_half.evaluate(labels, prior=0.998).charges_left
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
            base=view.base,
        )
        found = asked.open()
        return self if found is view else type(self)._of(found)

    @sealed
    def extend(self, X: Any, y: Any = None, *, allow: Iterable[str] = ()) -> Self:
        """Add rows to the holdout, on the same budget; return the guard of all rows.

        Later questions to it rest on all rows, so their intervals are narrower. Answers given before keep their
        intervals, and this guard still replays them. The same question about all rows is a new one. The same rows give
        the same guard again, in all processes: to resume it, open the first rows and extend them again.

        Parameters
        ----------
        X, y : array-like, or Rows
            Further rows of the same population: of the same kind, with the same columns, and with groups, ids and
            weights if the guard's rows have them. Rows in time order must come after those before.
        allow : set of str
            "vacuous" adds them even if the plan is vacuous.

        Returns
        -------
        ReusableHoldout

        Raises
        ------
        InputError
            If the rows do not fit those of the guard.
        OverlapError
            If some are in the guard already: by ids a single row, by features more than chance explains.
        SecondBudgetError
            If they have a budget elsewhere.
        LedgerMismatchError
            If this guard is not the newest: others were added to its rows.
        Halted
            If a final was given.

        Warns
        -----
        KeptLessWarning
            If the class counts of all rows, which are released where the metric rests on them, leave a wider tolerance
            than expected.

        Notes
        -----
        When rows are added, and how many, may depend on answers, but not on labels, old or new. **Rows that come
        because of their labels, or because a model failed on them, break the promise.**
        """
        allowed = allowed_of(allow)
        if allowed - {"vacuous"}:
            raise InputError(
                f"extend allows 'vacuous' alone; got {min(allowed - {'vacuous'})!r}; nothing was added; leave it out"
            )
        return type(self)._of(extension.extended(self._view, rows_of(X, y), vacuous=bool(allowed)))

    @checked_call
    def drift(
        self,
        subject: Any,
        X_train: Any = None,
        y_train: Any = None,
        *,
        where: ArrayLike,
        prior: Any = None,
        cv: Any = 5,
    ) -> Drift:
        """Ask by how much a model's score differs between some rows, such as new ones, and the others.

        These are two questions, about two slices, and both answers hold together. So their difference is certified.

        Parameters
        ----------
        subject, X_train, y_train, prior, cv
            As for :meth:`evaluate`; the prior is the same for both.
        where : array-like of bool of shape (rows,)
            Public mask of the new rows.

        Returns
        -------
        Drift
            The interval contains the score on the new rows minus that on the old ones.

        Raises
        ------
        InputError, BudgetError, Halted, ModelError
            As for :meth:`on` and :meth:`evaluate`.
        """
        slices = [self.on(where=where, allow={"vacuous"})]
        others = np.asarray(slices[0]._view.holdout.sample_weight) == 0
        if not others.any():
            raise InputError(
                "where must leave rows to compare with; it names all; nothing was asked; name some rows"
            )
        slices.append(self.on(where=others, allow={"vacuous"}))
        new, old = (one.evaluate(subject, X_train, y_train, prior=prior, cv=cv) for one in slices)
        return Drift(new.value - old.value, new.low - old.high, new.high - old.low, new, old)

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
            The new holdout: rows of the same population that no earlier epoch and no training has used. They are
            compared with the rows of every earlier epoch, row by row. Classes and prevalence are as before unless they
            are named; groups and ids are needed if the old rows had some.
        queries, tolerance, charges, estimate
            Numbers of the new plan. The tolerance stays and the charges follow from it, unless one of them is named.
        allow : set of str
            As for :class:`ReusableHoldout`.
        early : bool
            True to rotate though the guard has not halted: the rest of its budget is lost.

        Returns
        -------
        Rotation
            The new `guard`, and `X` and `y` of this one.

        Raises
        ------
        InputError
            If the guard has not halted, or the new holdout is one that was used before.
        OverlapError
            If rows of it were used before or trained on: by ids a single row, by features more than chance explains;
            nothing was released.
        PlanError
            If this number of new rows, with the expected class shares, cannot keep the promise, or if the plan is
            vacuous; nothing was released.
        RotatedError
            If another process has rotated already.

        Warns
        -----
        KeptLessWarning
            If the new rows' released class counts leave a smaller budget than planned; the guard was rotated.

        Notes
        -----
        Rows in time order must come after the old rows. Other new rows must be drawn independently of everything
        released and of the old rows. Then the intervals hold
        whatever was learnt in the epochs before. Each epoch has a failure probability of its own.
        """
        if not early and not self.halted:
            raise InputError(
                f"a guard is rotated when it has halted; this one has {self.charges_left} charges and "
                f"{self.queries_left:,} queries left; nothing was released; pass early=True to give them up"
            )
        if self._view.base is not self._view:
            raise InputError(
                "rows are rotated only by the guard that was made with them; this one is of another metric or slice; "
                "nothing was released; rotate that guard, then use its on() for this metric or slice"
            )
        stated = Stated(
            queries=queries, tolerance=tolerance, charges=charges, estimate=estimate, allow=allowed_of(allow)
        )
        fresh = type(self)._of(creation.rotated(self._view, rows_of(X, y), stated))
        return Rotation(fresh, self._view.holdout.X, self._view.holdout.y)


def rows_of(X: Any, y: Any) -> Rows:
    """Return rows as they were passed, or made of features and labels."""
    if isinstance(X, Rows):
        if y is not None:
            raise InputError("Rows already hold the labels; got y, too; nothing was made; leave y out")
        return X
    return Rows(X, y)
