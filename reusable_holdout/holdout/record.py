"""What a guard says of itself: what was released, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.holdout.boundary import sealed
from reusable_holdout.holdout.released import released_by

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from reusable_holdout.holdout.inputs import PrivateData
    from reusable_holdout.holdout.thresholdout import HaltReason, State, Thresholdout
    from reusable_holdout.holdout.transcript import Transcript
    from reusable_holdout.ledger import Ledger
    from reusable_holdout.plan import Plan
    from reusable_holdout.queries import Metric

__all__ = ["Record"]


class Record:
    """What anyone may know of a guard."""

    plan: Plan
    metric: Metric
    _holdout: PrivateData
    _policy: Thresholdout
    _transcript: Transcript
    _ledger: Ledger

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
            Columns query, name, series, prior, value, charged, low, high, threshold, paired, charges_left and asked_at
            (UTC).
        """
        if epoch is None:
            return self._transcript.history()
        return released_by(self._ledger, epoch).history

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
