"""The public state of a guard: what was released, and what is left."""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.answer import Answer, Price
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout.guard import frozen, releases
from reusable_holdout.guard.boards import Pairs
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.creation import place_of
from reusable_holdout.guard.door import measured_here
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.handle import Handle, arrive, make_handle, remember
from reusable_holdout.guard.subjects import Measured, checked_names, checked_priors
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.views import VIEW
from reusable_holdout.metrics import Metric
from reusable_holdout.plan import Plan, choice, whole
from reusable_holdout.plotting import plot_history
from reusable_holdout.ways import HaltReason, State
from reusable_holdout.ways.table import ON_REQUEST


class Overview:
    """Public facts of a guard."""

    plan: Plan
    metric: Metric
    view: int
    _view: GuardedView
    _handle: Any

    @sealed
    def history(self, *, epoch: int | None = None) -> pd.DataFrame:
        """Return everything that was released, in order.

        Parameters
        ----------
        epoch : int, optional
            Number of a holdout of this ledger, from 1; by default this guard's own.

        Returns
        -------
        pandas.DataFrame
            Answers about all metrics. Columns query, view, metric, name, series, prior, value, charged, low, high,
            threshold, outcome, way, told, nats, asked (declared queries taken so far), paired, charges_left,
            asked_at (UTC) and measured (the value if the rows released it; NaN if it only agreed).
            A row of way "view" gives the time at which another metric was opened, and its cost.
        """
        ledger = self._view.ledger
        return releases.released_by(ledger, ledger.epoch if epoch is None else epoch).history

    @sealed
    def certificate(self, *answers: Answer) -> FrozenCertificate:
        """Freeze answers, to keep them apart from the ledger and check them against it: ``verify(certificate=)``.

        Parameters
        ----------
        *answers : Answer
            Answers of this guard, about its metric; by default all of them.

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
        ledger = self._view.ledger
        with closing(ledger.latest()) if ledger.closed else nullcontext(ledger) as store:
            return frozen.freeze(store, ledger.epoch, self.view, queries)

    @sealed
    def plot(self, ax: Any = None) -> Any:
        """Draw priors against answers with their intervals, charges, and the budget left.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_history(self._own_history(), charges=self.plan.charges, metric=self.metric.name, ax=ax)

    def _own_history(self) -> pd.DataFrame:
        """Return the history of this metric."""
        history = self.history()
        return history[(history["view"] == self.view) & (history["way"] != VIEW)]

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        return self._view.holdout.bound.classes

    @property
    def private_labels(self) -> Literal["text", "numbers"] | None:
        """Kind of the labels if the set of them is private; else None."""
        return self._view.holdout.bound.private_labels

    @property
    def class_set(self) -> NDArray[Any] | Literal["private"] | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as this guard does its own."""
        return self._view.holdout.bound.class_set

    @property
    def queries_asked(self) -> int:
        """Declared queries that were used so far, in all processes; a choice uses one for each candidate."""
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
        """Charges that are left; at 0 the guard has halted. For claims: the charges of the unnamed series."""
        return self.charges_left_of("")

    @sealed
    def charges_left_of(self, series: str) -> int:
        """Return the charges that a series, such as a team, has left; only claims have separate charges.

        Raises
        ------
        InputError
            If the name is no text.
        """
        (name,) = checked_names([series], 1)
        return self._view.charges_left(self._state().charges, name)

    @property
    def final_width(self) -> float:
        """Half-width that a final of one model would certify now, at the plan's `estimate`."""
        return self._final_width(self._state())

    @sealed
    def price(self, way: str, *, prior: float | None = None, candidates: int = 1) -> Price:
        """Return the possible cost of a question, by public numbers alone, before it is asked.

        Parameters
        ----------
        way : {"evaluate", "gate", "reveal", "choose", "final"}
        prior : float, optional
            Prior of a reveal. It is checked; the cost does not depend on it.
        candidates : int
            Number of candidates of a choice.

        Returns
        -------
        Price

        Raises
        ------
        InputError
            If there is no such way, or the prior is out of bounds.
        """
        choice("way", way, ("evaluate", "gate", *ON_REQUEST))
        state, count, main = self._state(), whole("candidates", candidates), self._view.ways.main
        asked = self._view.ways.named(way) if way in ON_REQUEST else None
        if prior is not None:
            checked_priors(prior, 1, self._view.unit, self.metric.name, several=False)
        least = asked.least_nats(count) if asked else 0.0
        most = asked.worst_nats(count) if asked else main.certificate.charge_nats
        after = state._replace(nats=state.nats + most)
        if asked is None and state.charges < self.plan.charges:
            after = after._replace(charges=state.charges + 1, last_charge=state.asked + 1)
        ended = (asked or main).halt_reason(state) is not None
        ended = ended or (way == "choose" and count > self.plan.queries - state.asked)
        has_room = asked is None or not most
        has_room = has_room or most <= main.certificate.room(charges=state.charges, nats=state.nats)
        return Price(least, most, self._final_width(after), has_room and not ended)

    def _final_width(self, state: State) -> float:
        final = self._view.ways.final
        at = self.plan.unit(self.plan.estimate)
        return final.certificate.final_half_width(length=final.length(state), estimate=at) * self.plan.span

    @property
    def rows(self) -> int:
        """The number of the holdout's rows; predictions must have the same number."""
        return self._view.holdout.bound.rows

    @property
    def has_features(self) -> bool:
        """True if models can predict the holdout's rows."""
        return self._view.holdout.X is not None

    @property
    def features(self) -> int | None:
        """The number of the holdout's columns; None if they are not counted."""
        shape = np.shape(self._view.holdout.X)
        return int(shape[1]) if len(shape) == 2 else None

    @property
    def weighted(self) -> bool:
        """True if the holdout's rows have sample weights."""
        return self._view.holdout.sample_weight is not None

    @property
    def halted(self) -> bool:
        """True if nothing new will be answered any more."""
        return self.halt_reason is not None

    @property
    def halt_reason(self) -> HaltReason | None:
        """Why nothing new is answered: "charges" or "queries" ran out, or a "final" was given; else None."""
        return self._view.ways.main.halt_reason(self._state())

    @property
    def epoch(self) -> int:
        """The number of this guard's holdout in its ledger, from 1; see :meth:`rotate`."""
        return self._view.ledger.epoch

    @property
    def closed(self) -> bool:
        """True if :meth:`close` was called."""
        return self._view.ledger.closed

    @property
    def ledger(self) -> str | None:
        """URL of the ledger; None if it is in memory."""
        return self._view.ledger.url

    @sealed
    def _state(self) -> State:
        return self._view.transcript.state

    @property
    def digest(self) -> str:
        """Keyed digest of the holdout, hex: it names the holdout and tells nothing else about it."""
        return self._view.digest

    @sealed
    def halt(self) -> Halted:
        """Return the exception that a new question raises now or, before a halt, would raise once no query is left."""
        return self._view.transcript.halt(self.halt_reason or "queries", [])

    @sealed
    def pairs(self, beta: float) -> Pairs:
        """Return an object that tells which of two answered claims is certainly better; nothing is asked or charged.

        Parameters
        ----------
        beta : float
            Failure probability of all pairs together, added to the guard's own. With a `confidence` of .955 and a
            `beta` of .005, all intervals and all pairs hold together with probability .95.

        Raises
        ------
        InputError
            If the guard is no board of claims, the metric no plain mean over all rows, or beta no probability.
        """
        bound = self._view.holdout.bound
        plain = bound.by_rows and bound.groups is None and bound.counted_rows == bound.rows
        if self.plan.asks != "claims" or not plain or bound.relative_weights is not None:
            raise InputError(
                'pairs() is only for Plan(board="claims") and metrics that are means of equally weighted rows; got '
                f"{self.metric.name}; compare intervals instead"
            )
        return self._view.boards.pairs(self._view.ways.claim, beta, self._view.unit)

    def __repr__(self) -> str:
        bound = self._view.holdout.bound
        units = f"{bound.counted_rows:,} rows" if bound.groups is None else f"{len(bound.groups):,} groups"
        about = f"{self.metric.name}, {units}"
        try:
            state = self._state()
        except HoldoutError:
            return f"<ReusableHoldout: {about}, closed>"
        asked = f"{state.asked:,} of {self.plan.queries:,}"
        if self.plan.asks == "claims":
            return f"<ReusableHoldout: {about}, {asked} claims asked, {state.charges:,} charged>"
        left = self._view.transcript.allowance.left(state.charges)
        return (
            f"<ReusableHoldout: {about}, {asked} queries asked, {left} of {self.plan.charges} charges left>"
        )

    # ---- in other processes

    def __guard_name__(self) -> str:
        """Return the guard's name, the same in every process: without the key nothing can be learnt from it."""
        view = self._view
        return view.root.content.guard(f"{place_of(view.ledger)} {view.ledger.epoch} {view.number}")

    @sealed
    def __reduce__(self) -> tuple[Any, ...]:
        remember(self)
        return arrive, (self._handle_of_all(),)

    def _handle_of_all(self) -> Handle:
        view, holdout = self._view, self._view.holdout
        if self._handle is None:
            contents: dict[str, Any] = {"metric": self.metric, "sample_weight": holdout.sample_weight}
            if view.root is view:
                contents |= {name: getattr(holdout, name) for name in ("X", "y", "classes", "groups")}
                self._handle = make_handle(view.ledger, view.key[1], contents, epoch=self.epoch)
            else:
                contents |= {"added": view.base.added}
                root = type(self)._of(view.root)  # type: ignore[attr-defined]
                self._handle = root._handle_of_all().of_view(self.view, contents)
        return self._handle  # type: ignore[no-any-return]

    @sealed
    def measure(
        self, model: Any, *, prior: float | None = None, prior_error: float = 0.0, way: str = "evaluate"
    ) -> Measured:
        """Measure a fitted model, if a question about it needs that; the result is encrypted.

        A search fits its candidates in workers. Each worker measures with the guard that it was sent. The measurement
        goes back to the asking process, encrypted with the guard's key.

        Parameters
        ----------
        model : estimator
            Fitted.
        prior : float, optional
            Prior of the question; None for a final.
        prior_error : float, optional
            The prior's standard error.
        way : {"evaluate", "gate", "reveal", "choose", "final"}
            Way of the question that will follow.

        Returns
        -------
        Measured
            A subject for :meth:`ask`, in this process or another one that has this guard.

        Raises
        ------
        InputError
            If the model does not fit the holdout, or the prior the metric.
        """
        return measured_here(self._view, model, prior, prior_error, way)
