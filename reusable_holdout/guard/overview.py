"""What a guard says of itself: what was released, and what is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import markup
from reusable_holdout.certainty import choice_nats
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import HoldoutError
from reusable_holdout.guard import frozen, releases
from reusable_holdout.guard.answer import Answer
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.kinds import HaltReason, State
from reusable_holdout.guard.kinds.stated import checked_names
from reusable_holdout.guard.stores import sql_ledger
from reusable_holdout.guard.views import VIEW
from reusable_holdout.ledger import Ledger
from reusable_holdout.plan import choice, whole

__all__ = ["Overview", "Price"]


class Price(NamedTuple):
    """What a question can cost.

    Attributes
    ----------
    least, most : float
        Nats, at its cheapest and at its dearest outcome.
    final_width : float
        Half-width that a final would certify after the dearest, at the plan's `estimate`.
    allowed : bool
        Whether it would be answered now: the guard has not halted, there are as many queries left as a choice has
        candidates, and no outcome would break a promise of the plan.
    """

    least: float
    most: float
    final_width: float
    allowed: bool


class Overview(Asking):
    """What anyone may know of a guard."""

    @sealed
    def history(self, *, epoch: int | None = None) -> pd.DataFrame:
        """Everything released, in order.

        Parameters
        ----------
        epoch : int, optional
            Of the holdouts of this ledger, from 1; by default this guard's own.

        Returns
        -------
        pandas.DataFrame
            Of all metrics of the rows. Columns query, view, metric, name, series, prior, value, charged, low, high,
            threshold, kind, told, nats, asked (declared queries taken so far), paired, charges_left and asked_at (UTC).
            A row of kind "view" says when another metric was opened, and what that cost.
        """
        if epoch is None:
            return self._transcript.history()
        return releases.released_by(self._ledger, epoch).history

    @sealed
    def certificate(self, *answers: Answer) -> FrozenCertificate:
        """Freeze answers, to be kept where the ledger is not and checked against it later: ``verify(certificate=)``.

        Parameters
        ----------
        *answers : Answer
            Of this guard, about its metric; by default all that were given.

        Returns
        -------
        FrozenCertificate
            Without a path, a key or a row of the holdout.

        Raises
        ------
        InputError
            If an answer is not in the ledger, or about another metric.
        LedgerError
            If the ledger cannot be read.
        """
        queries = [answer.query for answer in answers] if answers else None
        with self._read_again() as ledger:
            return frozen.freeze(ledger, self._ledger.epoch, self.view, queries)

    @contextlib.contextmanager
    def _read_again(self) -> Iterator[Ledger]:
        """Its ledger, though it was closed."""
        url = self._ledger.url
        if not self._ledger.closed or url is None:
            yield self._ledger
            return
        ledger = sql_ledger(url, must_exist=True)
        try:
            yield ledger
        finally:
            ledger.close()

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

        return plot_history(self._own_history(), charges=self.plan.charges, metric=self.metric.name, ax=ax)

    def _repr_html_(self) -> str:
        """What anyone may know of it, and what is left of its budget."""
        plan = self.plan
        facts = [("metric", f"{self.metric.name}, by {plan.policy}"), ("holdout", self._units)]
        try:
            asked, left, reason = self.queries_asked, self.charges_left, self.halt_reason
        except HoldoutError:
            return markup.facts_table("ReusableHoldout", [*facts, ("state", "closed")])
        of_each = plan.policy == "claims"
        about = "about " if of_each else ""
        facts += [
            ("charges of each series", f"{plan.charges:,}")
            if of_each
            else ("charges left", f"{left:,} of {plan.charges:,}"),
            ("queries asked", f"{asked:,} of {plan.queries:,}"),
            ("agreed answers", f"within {about}{plan.tolerance:g}, at scores near {plan.estimate:g}"),
            ("intervals", f"hold all at once with probability {plan.confidence:g}"),
            ("state", "answers" if reason is None else f"halted: {reason}"),
        ]
        return markup.facts_table("ReusableHoldout", facts)

    @property
    def _units(self) -> str:
        """How many rows count, or groups."""
        bound = self._holdout.bound
        return f"{bound.counted_rows:,} rows" if bound.groups is None else f"{len(bound.groups):,} groups"

    def _own_history(self) -> pd.DataFrame:
        """What was released of this metric."""
        history = self.history()
        return history[(history["view"] == self.view) & (history["kind"] != VIEW)]

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        return self._holdout.bound.classes

    @property
    def private_labels(self) -> Literal["text", "numbers"] | None:
        """Kind of the labels if the set of them is private; else None."""
        return self._holdout.bound.private_labels

    @property
    def class_set(self) -> NDArray[Any] | Literal["private"] | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as this guard does its own."""
        return self._holdout.bound.class_set

    @property
    def queries_asked(self) -> int:
        """Declared queries that answers took so far, in all processes: one, a choice one for each candidate."""
        return self._state().asked

    @property
    def queries_left(self) -> int:
        """Declared queries that are left, in all processes."""
        return self.plan.queries - self.queries_asked

    @property
    def answered(self) -> int:
        """Answers released so far, in all processes: the number of the last one."""
        return self._state().query

    @property
    def charges_left(self) -> int:
        """Charges that are left, whatever was told; at 0 the guard has halted. Of claims: of the nameless series."""
        return self.charges_left_of("")

    @sealed
    def charges_left_of(self, series: str) -> int:
        """Charges that a series, such as a team, has left; of other policies than claims all have them together.

        Raises
        ------
        InputError
            If the name is no text.
        """
        (name,) = checked_names([series], 1)
        return self._transcript.charges_left_of(self._ways.policy, name, self._transcript.state.charges)

    @property
    def final_width(self) -> float:
        """Half-width that a final of one model would certify now, at the plan's `estimate`."""
        return self._final_width(self._state())

    @sealed
    def price(self, kind: str, *, prior: float | None = None, candidates: int = 1) -> Price:
        """Say what a question can cost at most, before it is asked; public numbers alone.

        Parameters
        ----------
        kind : {"evaluate", "reveal", "choose", "final"}
        prior : float, optional
            Of a reveal: the least cost is that of a value in the prior's own cell, whatever the prior.
        candidates : int
            Of a choice.

        Returns
        -------
        Price

        Raises
        ------
        InputError
            If there is no such kind, or the prior is out of bounds.
        """
        choice("kind", kind, ("evaluate", "reveal", "choose", "final"))
        state, count = self._state(), whole("candidates", candidates)
        if prior is not None:
            self._ways.reveal.check_stated(prior, self.metric.name)
        if kind == "evaluate":
            least, most = 0.0, self._ways.policy.certificate.charge_nats
        elif kind == "reveal":
            least, most = self._ways.reveal.least_nats(), self._ways.reveal.worst_nats()
        elif kind == "choose":
            least = min(self._ways.choose.code.nats) + choice_nats(1, count)
            most = self._ways.choose.worst_nats(count)
        else:
            least = most = 0.0
        after = state._replace(nats=state.nats + most)
        if kind == "evaluate" and state.charges < self.plan.charges:
            after = after._replace(charges=state.charges + 1, last_charge=state.asked + 1)
        ended = (self._ways.final if kind == "final" else self._ways.policy).halt_reason(state) is not None
        ended = ended or (kind == "choose" and count > self.plan.queries - state.asked)
        room = self._ways.reveal.certificate.room(charges=state.charges, nats=state.nats)
        allowed = not ended and (kind in {"evaluate", "final"} or most <= room)
        return Price(least, most, self._final_width(after), allowed)

    def _final_width(self, state: State) -> float:
        final = self._ways.final
        return final.certificate.final_half_width(length=final.length(state), estimate=self.plan.estimate)

    @property
    def rows(self) -> int:
        """Rows of the holdout, as many as predictions about it have."""
        return self._holdout.bound.rows

    @property
    def has_features(self) -> bool:
        """Whether models can predict the holdout's rows."""
        return self._holdout.X is not None

    @property
    def features(self) -> int | None:
        """How many columns the holdout has; None if they are not counted."""
        shape = np.shape(self._holdout.X)
        return int(shape[1]) if len(shape) == 2 else None

    @property
    def weighted(self) -> bool:
        """True if the holdout's rows have sample weights."""
        return self._holdout.sample_weight is not None

    @property
    def halted(self) -> bool:
        """Whether nothing new will be answered any more."""
        return self.halt_reason is not None

    @property
    def halt_reason(self) -> HaltReason | None:
        """Why nothing new is answered: "charges" or "queries" ran out, or a "final" was given; else None."""
        return self._ways.policy.halt_reason(self._state())

    @property
    def epoch(self) -> int:
        """Which of its ledger's holdouts this guard has, from 1; see :meth:`rotate`."""
        return self._ledger.epoch

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
