"""Other metrics, slices and policies of the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from reusable_holdout.deferred import modules_on_first_use
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.standing import Standing
from reusable_holdout.queries import Metric, resolve_metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from reusable_holdout.guard import opening
    from reusable_holdout.validity import Policy
else:
    (opening,) = modules_on_first_use(__package__, "opening")

__all__ = ["Sharing"]


class Sharing(Standing):
    """Several guards of the same rows, on one budget."""

    @sealed
    def on(
        self,
        metric: str | Metric | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        tolerance: float | None = None,
        policy: Policy | None = None,
        estimate: float | None = None,
        prior_error: float | None = None,
        spread: float | None = None,
        prevalence: Any = None,
        vacuous: bool = False,
        name: str | None = None,
    ) -> Self:
        """Ask about another metric of the same rows, a slice of them, or by another policy, on the same budget.

        Queries, charges and confidence are the guard's, and all that is told anywhere widens everything. What is not
        named is as here. The same metric, weights and policy give the same guard again, in all processes.

        Parameters
        ----------
        metric : str or Metric, optional
        sample_weight : array-like of shape (rows,), optional
            Public weights; those of 0 and 1 make a slice, such as ``group == "A"``.
        tolerance : float, optional
            In the metric's unit; by default the smallest one that can be kept, whatever the guard's plan allows to be
            told.
        policy : {"thresholdout", "ladder", "guess-and-check", "gate"}, optional
        estimate, prior_error, spread : float, optional
            As for :class:`Plan`; of another metric, nothing is known of them by default.
        prevalence : float, sequence of float or dict, optional
            As for :class:`ReusableHoldout`; of the same metric that of the guard by default. Class counts that a metric
            rests on are told when it is first asked for, and cost up to 5 nats.
        vacuous : bool
            Whether to open it though its plan says nothing: its tolerance is more than a quarter of the metric's range.
        name : str, optional
            What history calls it.

        Returns
        -------
        ReusableHoldout
            With all ways to ask; its `plan`, `metric`, `policy` and listeners are its own.

        Raises
        ------
        PlanError
            If the tolerance cannot be kept; `nearest` says which can. If it could with the classes that were guessed,
            then their counts were told, and paid for. Or if the plan is vacuous, at the class shares that you expect;
            what was opened before is opened again.
        InputError
            If rows and metric do not fit, or what must be told of the class counts could break a promise of the plan.
        LedgerMismatchError
            If it was opened with another tolerance: before, or now, for the class counts that it tells keep no other.
        Halted
            If a final was given.

        Notes
        -----
        That a slice has rows of one class only, or a target beyond the metric's bounds, is a fact about the labels:
        such a metric is given, and fails when it is asked, which takes a charge.

        Examples
        --------
        >>> import numpy as np
        >>> from reusable_holdout import ReusableHoldout
        >>> labels = np.arange(10_000) % 2
        >>> guard = ReusableHoldout(None, labels, queries=100, charges=5, estimate=0.9, seed=1)
        >>> first_half = guard.on(sample_weight=np.arange(10_000) < 5_000)
        >>> first_half.evaluate_predictions(labels, prior=0.99).charges_left
        5
        >>> guard.queries_asked
        1
        """
        root, chosen = self._root, self.metric if metric is None else resolve_metric(metric)
        same, counts = chosen == self.metric, self._view.counts
        guessed = self.plan.stated_spread if same and self.plan.family != "ratio" else None
        shares = counts.guessed if same and counts is not None else None
        asked = opening.Opening(
            metric=chosen,
            sample_weight=self._holdout.sample_weight if sample_weight is None else sample_weight,
            policy=self.policy if policy is None else policy,
            tolerance=tolerance,
            estimate=self.plan.estimate if same and estimate is None else estimate,
            prior_error=self.plan.stated_prior_error if same and prior_error is None else prior_error,
            spread=guessed if spread is None else spread,
            prevalence=shares if prevalence is None else prevalence,
            vacuous=vacuous,
            name=name,
            root=root.plan,
            rules=root._view.kept,
        )
        opened = asked.open(root._view, root._holdout, self._transcript, ContentKey(self._key[0]), root._ways)
        if opened.view.number == 0:
            return root
        guard = type(self).__new__(type(self))
        guard.digest, guard._transcript = self.digest, self._transcript
        guard._stand(opened.holdout, opened.view, opened.plan, self._ledger, self._key, root)
        return guard
