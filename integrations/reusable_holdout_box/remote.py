"""Guards that live elsewhere: what all of them share, and which one an address means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Self, cast

from numpy.typing import ArrayLike, NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, InputError, printable
from reusable_holdout.guard import Answer, Choice
from reusable_holdout.metrics import Metric
from reusable_holdout.metrics.containers import Kind
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call

__all__ = ["RemoteHoldout", "history_frame"]

_HOMES = {
    "unix": "reusable_holdout_box.client",
    "http": "reusable_holdout_leaderboard.client.remote",
    "https": "reusable_holdout_leaderboard.client.remote",
}
"""Modules whose import makes a scheme known: by name, for who asks a box needs no HTTP, and the other way round."""

_COLUMNS = [
    *("query", "view", "metric", "name", "series", "prior", "value", "charged", "low", "high", "threshold"),
    *("kind", "told", "nats", "asked", "paired", "charges_left", "asked_at"),
]
"""Of :meth:`RemoteHoldout.history`."""


class RemoteHoldout:
    """A guard that is asked where the labels are not; which kind it is, its address says, as a path's does.

    ``RemoteHoldout("unix:///srv/box/socket")`` asks a box on this machine, ``RemoteHoldout("http://host:8000", token)``
    a leaderboard. Both have the interface of the local guard, as far as predictions go: a loop that asks a
    :class:`reusable_holdout.ReusableHoldout` about predictions asks these as well. What was asked before gets the
    recorded answer, free; so a question is asked again when the connection breaks, and is charged once at most.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``, ``http://host:8000`` or ``https://host/c/name``.
    token : str
        Of the team, for a leaderboard; a box knows who asks by the user that the kernel names.
    patience_seconds : float
        How long to try again while it cannot be reached.

    Attributes
    ----------
    plan : Plan
    metric : Metric
    policy : str

    Raises
    ------
    InputError
        If the address is none of these.
    HoldoutError
        If nothing answers there, or the token is nobody's.
    """

    plan: Plan
    metric: Metric
    policy: str

    private_labels: Kind | None = None
    """Kind of the labels, "text" or "numbers", if the set of them is private."""

    has_features: ClassVar[bool] = False
    """No model can be asked about: its predictions can."""

    _schemes: ClassVar[dict[str, type[RemoteHoldout]]] = {}

    def __init_subclass__(cls, *, schemes: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        RemoteHoldout._schemes |= dict.fromkeys(schemes, cls)

    @checked_call
    def __new__(cls, url: str, token: str = "", *, patience_seconds: float = 60.0) -> Self:
        """Make what the address means."""
        return cast("Self", object.__new__(_class_of(url) if cls is RemoteHoldout else cls))

    # ---- ask

    @checked_call
    def evaluate_predictions(self, predictions: Any, *, prior: float | None = None, name: str = "") -> Answer:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.evaluate_predictions` does."""
        raise NotImplementedError

    @checked_call
    def evaluate_many(
        self, predictions: Any, priors: ArrayLike | None = None, *, names: Sequence[str] | None = None
    ) -> list[Answer]:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.evaluate_many` does."""
        raise NotImplementedError

    @checked_call
    def compare_predictions(
        self, predictions: Any, incumbent: Any, *, prior: float | None = None, name: str = ""
    ) -> Answer:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.compare_predictions` does, where comparisons are answered."""
        raise NotImplementedError

    @checked_call
    def reveal_predictions(self, predictions: Any, *, prior: float | None = None, name: str = "") -> Answer:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.reveal_predictions` does, where values are told."""
        raise NotImplementedError

    @checked_call
    def choose_predictions(self, predictions: Any, priors: Any, *, name: str = "") -> Choice:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.choose_predictions` does, where choices are made."""
        raise NotImplementedError

    @checked_call
    def final_predictions(self, predictions: Any, *, name: str = "") -> Any:
        """Ask as :meth:`reusable_holdout.ReusableHoldout.final_predictions` does, where finals are given."""
        raise NotImplementedError

    # ---- what is known

    @property
    def ids(self) -> tuple[Any, ...] | None:
        """Ids of the rows, in the order of predictions; None if they have none."""
        raise NotImplementedError

    def history(self) -> pd.DataFrame:
        """Everything that was released, in order; as :meth:`reusable_holdout.ReusableHoldout.history`."""
        raise NotImplementedError

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        raise NotImplementedError

    @property
    def class_set(self) -> NDArray[Any] | str | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as the guard does its own."""
        return self.classes if self.private_labels is None else "private"

    @property
    def takes_priors(self) -> bool:
        """Whether a query states a prior: a ladder has its own."""
        return "ladder" not in self.policy

    @property
    def answered(self) -> int:
        """Answers released so far, to all who ask: the number of the last one."""
        return int(self._status()["answered"])

    @property
    def queries_asked(self) -> int:
        """Declared queries that answers took so far, of all who ask."""
        return int(self._status()["queries_asked"])

    @property
    def queries_left(self) -> int:
        """Declared queries that are left, of all who ask."""
        return int(self._status()["queries_left"])

    @property
    def charges_left(self) -> int | None:
        """Charges still affordable; None where that is not told, as while a competition is blind."""
        left = self._status()["charges_left"]
        return None if left is None else int(left)

    @property
    def halted(self) -> bool:
        """Whether nothing new will be answered any more."""
        return bool(self._status()["halted"])

    @property
    def halt_reason(self) -> str | None:
        """Why nothing new is answered: "charges" or "queries" ran out, or a "final" was given; else None."""
        reason = self._status()["halt_reason"]
        return None if reason is None else str(reason)

    @property
    def epoch(self) -> int:
        """Label set it stands at, from 1."""
        return int(self._status()["epoch"])

    def halt(self) -> Halted:
        """Exception that a new query would raise now, or at the end of the budget."""
        reason = self.halt_reason or "queries"
        return self._halt(f"the guard at {self._where} has halted ({reason})", reason, [])

    # ---- life

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside

    @property
    def _where(self) -> str:
        """Its address, for messages."""
        raise NotImplementedError

    def _status(self) -> Mapping[str, Any]:
        """What was asked and is left: public numbers."""
        raise NotImplementedError

    def _halt(self, message: str, reason: str, answers: Sequence[Answer | None]) -> Halted:
        return Halted(message, reason=reason, history=self.history(), answers=answers)


def history_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Frame of a history's rows as they travel."""
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    for column in ("metric", "name", "series") if len(frame) else ():
        frame[column] = frame[column].map(printable)
    frame["asked_at"] = pd.to_datetime(frame["asked_at"], utc=True, format="ISO8601")
    return frame


def _class_of(url: object) -> type[RemoteHoldout]:
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    if scheme not in _HOMES:
        raise InputError(
            "url must be unix:///path/of/socket for a box, or http://host:port or https://host for a leaderboard; got "
            f"{url!r}; nothing was asked"
        )
    import_module(_HOMES[scheme])
    return RemoteHoldout._schemes[scheme]
