"""The client of a guard that lives elsewhere: in a box on this machine, or on a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from reusable_holdout.guard.kinds.stated import checked_names, checked_prior, checked_priors

from reusable_holdout import Answer, Choice
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, HoldoutError, InputError, ModelError, printable
from reusable_holdout.metrics import described_metric
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.judged import Judge, JudgedScores
from reusable_holdout.metrics.predictions import ClassCoder, Predictions
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call
from reusable_holdout_box.transport import transport_to

__all__ = ["RemoteHoldout"]

_ROOM = 4_096  # bytes of a message beside its arrays, and for each of its names
_FIELDS = set(Answer._fields) - {"guardrails"}
_COLUMNS = [
    *("query", "view", "metric", "name", "series", "prior", "value", "charged", "low", "high", "threshold"),
    *("kind", "told", "nats", "asked", "paired", "charges_left", "asked_at"),
]


def _told(name: str) -> Any:
    """Return a property that asks for a public number of the moment."""
    return property(lambda remote: remote._transport.ask({"ask": "status"})[name])


class RemoteHoldout:
    """A guard that is asked from where the labels are not.

    ``RemoteHoldout("unix:///srv/box/socket")`` asks a box on this machine, ``RemoteHoldout("http://host:8000", token)``
    a leaderboard. A loop that asks a :class:`reusable_holdout.ReusableHoldout` about predictions can ask either of them
    instead. The same question again gets the recorded answer, free. So a question is sent again when the connection
    breaks, and is charged once at most.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``, ``http://host:8000`` or ``https://host/c/name``.
    token : str
        Token of the team, for a leaderboard. A box takes none: the kernel tells it which user asks.
    patience_seconds : float
        How long to try again while nobody answers.

    Attributes
    ----------
    metric : Metric
    policy : str
    plan : Plan
        Plan of the guard, which everyone who asks shares.
    rows : int
    digest : str or None
        Name of the rows; a leaderboard does not tell it.
    allow : tuple of str
        Ways to ask that the owner allows, such as "evaluate" and "compare".
    classes : numpy.ndarray or None
        Sorted classes, if the set of them is public; None if it is private, and for metrics of real values.
    private_labels : {"text", "numbers"} or None
        Kind of the labels, if the set of them is private.
    about : mapping
        All that is public and fixed, as it came.
    answered, queries_asked, queries_left, charges_left, epoch : int
        Number of the last answer; queries and charges that were taken or are left, of everyone who asks; number of the
        label set, from 1. `charges_left` is None while a competition is blind.
    halted, halt_reason : bool, str or None
        True if nothing new will be answered; because "charges" or "queries" ran out, or a "final" was given.

    Raises
    ------
    InputError
        If the address is none of these, or a box is given a token.
    HoldoutError
        If nobody answers there, or this user or token may not ask.

    Warns
    -----
    NoWallWarning
        If a box runs as this user, or this user is root.

    Notes
    -----
    A leaderboard answers evaluations alone, and knows a question by its predictions: with another prior they get the
    answer that they got before. What a charged answer of a leaderboard cost is in :meth:`history`; its `nats` is NaN.
    """

    answered, queries_asked, queries_left = _told("answered"), _told("queries_asked"), _told("queries_left")
    charges_left, epoch = _told("charges_left"), _told("epoch")
    halted, halt_reason = _told("halted"), _told("halt_reason")

    has_features: ClassVar[bool] = False
    """No model can be asked about: its predictions can."""

    @checked_call
    def __init__(self, url: str, token: str = "", *, patience_seconds: float = 60.0) -> None:
        self._made_of = (url, token, patience_seconds)
        self._transport = transport_to(url, token, patience_seconds)
        try:
            about = self._transport.ask({"ask": "about"})
        except BaseException:
            self._transport.close()
            raise
        self.about = about
        self.metric, self.plan = described_metric(about["metric"]), Plan.kept(about["plan"])
        self.policy, self.rows, self.digest = about["policy"], about["rows"], about["digest"]
        self.allow, self.private_labels = tuple(about["allow"]), about["private_labels"]
        self.classes = None if about["classes"] is None else np.array(about["classes"])

    # ---- ask

    @checked_call
    def evaluate_predictions(
        self,
        predictions: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: str = "",
        anew: bool = False,
    ) -> Answer:
        """Ask about predictions; as :meth:`reusable_holdout.ReusableHoldout.evaluate_predictions`.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit, or the owner does not allow the question; nothing was asked.
        HoldoutError
            If nobody answers; the same question may be asked again, and is charged once at most.
        """
        more = {"prior": self._prior(prior), "tolerance": tolerance, "anew": anew or None}
        return self._asked("evaluate", [self._prepared(predictions)], name=_checked(name), **more)[0]

    @checked_call
    def evaluate_many(
        self,
        predictions: Any,
        priors: ArrayLike | None = None,
        *,
        tolerances: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> list[Answer]:
        """Ask a batch; as :meth:`reusable_holdout.ReusableHoldout.evaluate_many`.

        A batch that is longer than a message of a box goes in several messages, each of them a batch.

        Raises
        ------
        Halted
            If a budget runs out on the way; its `answers` are those that were told before.
        BudgetError, InputError, HoldoutError
            As for one question; what earlier messages asked is answered.
        """
        arrays = self._prepared_many(predictions)
        called, stated = checked_names(names, len(arrays)), self._priors(priors, len(arrays))
        limits = None
        if tolerances is not None:
            limits = checked_priors(tolerances, len(arrays), 0.0, np.inf, "a tolerance").tolist()
        answers: list[Answer] = []
        for part in self._parts(arrays):
            more = {"priors": stated and stated[part], "tolerances": limits and limits[part]}
            answers += self._asked("many", arrays[part], before=answers, names=called[part], **more)
        return answers

    @checked_call
    def compare_predictions(
        self,
        predictions: Any,
        incumbent: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: str = "",
    ) -> Answer:
        """Ask how much better predictions are; as :meth:`reusable_holdout.ReusableHoldout.compare_predictions`."""
        both = [self._prepared(one) for one in (predictions, incumbent)]
        stated = self._prior(prior, paired=True)
        return self._asked("compare", both, prior=stated, tolerance=tolerance, name=_checked(name))[0]

    @checked_call
    def reveal_predictions(self, predictions: Any, *, prior: float | None = None, name: str = "") -> Answer:
        """Ask for the holdout's own value; as :meth:`reusable_holdout.ReusableHoldout.reveal_predictions`."""
        one = [self._prepared(predictions)]
        return self._asked("reveal", one, prior=self._prior(prior), name=_checked(name))[0]

    @checked_call
    def choose_predictions(self, predictions: Any, priors: Any, *, name: str = "") -> Choice:
        """Ask which of several is best; as :meth:`reusable_holdout.ReusableHoldout.choose_predictions`."""
        arrays = self._prepared_many(predictions)
        stated = self._priors(priors, len(arrays))
        reply = self._reply("choose", arrays, priors=stated, name=_checked(name))
        return Choice(int(reply["index"]), _answer(reply["answers"][0]), float(reply["others"]))

    @checked_call
    def final_predictions(self, predictions: Any, *, name: str = "") -> Any:
        """Ask for the end of a project; as :meth:`reusable_holdout.ReusableHoldout.final_predictions`."""
        several = isinstance(predictions, list | tuple) and len(predictions) and np.ndim(predictions[0]) > 0
        given = list(predictions) if several else [predictions]
        answers = self._asked("final", [self._prepared(one) for one in given], name=_checked(name))
        return answers if several else answers[0]

    def evaluate(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a model would have to run where the labels are.

        Raises
        ------
        InputError
            In any case; nothing was asked.
        """
        raise InputError(
            "a guard elsewhere is asked about predictions, for a model would run where the labels are; nothing was "
            "asked; predict here, and ask with evaluate_predictions or compare_predictions"
        )

    compare = evaluate

    # ---- what is known

    def history(self) -> pd.DataFrame:
        """Return all that was released, to everyone; as :meth:`reusable_holdout.ReusableHoldout.history`.

        While a competition is blind there are no rows.
        """
        rows: list[dict[str, Any]] = []
        while True:
            found = self._transport.ask({"ask": "history", "after": rows[-1]["query"] if rows else 0})
            rows += found["rows"]
            if len(found["rows"]) < found["page"]:
                break
        frame = pd.DataFrame(rows, columns=_COLUMNS)
        for column in ("metric", "name", "series") if rows else ():
            frame[column] = frame[column].map(printable)
        frame["asked_at"] = pd.to_datetime(frame["asked_at"], utc=True, format="ISO8601")
        return frame

    @cached_property
    def ids(self) -> tuple[Any, ...] | None:
        """Ids of the rows, in the order of predictions; None if they have none."""
        count = self.about["ids"]
        if count is None:
            return None
        found: list[Any] = []
        while len(found) < count:
            page = self._transport.ask({"ask": "ids", "after": len(found)})["ids"]
            if not page:
                raise HoldoutError("the ids of all rows must be told; they were not; nothing was asked")
            found += page
        return tuple(found)

    @property
    def class_set(self) -> NDArray[Any] | str | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as the guard does its own."""
        return self.classes if self.private_labels is None else "private"

    @property
    def takes_priors(self) -> bool:
        """True if a query states a prior: a ladder has its own."""
        return "ladder" not in self.policy

    def halt(self) -> Halted:
        """Return the exception that a new query would raise now, or at the end of the budget."""
        reason = self.halt_reason or "queries"
        message = f"the guard at {self._made_of[0]} has halted ({reason})"
        return Halted(message, reason=reason, history=self.history())

    # ---- life

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteHoldout: {self.metric.name}, {self.rows:,} rows, at {self._made_of[0]}>"

    def __reduce__(self) -> tuple[Any, ...]:  # for worker processes; it carries the token
        url, token, patience = self._made_of
        return partial(type(self), patience_seconds=patience), (url, token)

    # ---- inside

    @cached_property
    def _form(self) -> Predictions | JudgedScores:
        """Form of predictions: they are checked here as the guard will, in its own words."""
        if isinstance(self.metric.kernel, Judge):
            return JudgedScores(Ids(list(self.ids or ())), self.metric.kernel)
        coder = None
        if self.classes is not None:
            coder = ClassCoder(self.classes, "text" if self.classes.dtype.kind == "U" else "numbers")
        return Predictions(self.metric.response, rows=self.rows, coder=coder, answers=self.private_labels)

    def _prepared(self, predictions: Any) -> NDArray[Any]:
        prepared = self._form.prepare(predictions)
        return self._form.aligned(predictions) if isinstance(self._form, JudgedScores) else prepared

    def _prepared_many(self, predictions: Any) -> list[NDArray[Any]]:
        prepared = self._form.prepare_many(predictions)
        if not isinstance(self._form, JudgedScores):
            return list(prepared)
        return [
            self._form.aligned(one)
            for one in (predictions if isinstance(predictions, list | tuple) else np.asarray(predictions))
        ]

    def _prior(self, prior: float | None, *, paired: bool = False) -> float | None:
        metric, what = self.metric, f"differences of {self.metric.name}" if paired else self.metric.name
        span = metric.upper - metric.lower
        lower, upper = (-span, span) if paired else (metric.lower, metric.upper)
        return None if prior is None else checked_prior(prior, lower, upper, what)

    def _priors(self, priors: ArrayLike | None, count: int) -> list[float] | None:
        lower, upper, what = self.metric.lower, self.metric.upper, self.metric.name
        return None if priors is None else checked_priors(priors, count, lower, upper, what).tolist()

    def _parts(self, arrays: Sequence[NDArray[Any]]) -> Iterator[slice]:
        """Slices of a batch, each of them one message."""
        room, start, size = self.about["most_bytes"] - _ROOM, 0, 0
        for place, one in enumerate(arrays):
            if place > start and size + one.nbytes + _ROOM > room:
                yield slice(start, place)
                start, size = place, 0
            size += one.nbytes + _ROOM
        yield slice(start, len(arrays))

    def _asked(self, way: str, arrays: Sequence[NDArray[Any]], **more: Any) -> list[Answer]:
        return [_answer(one) for one in self._reply(way, arrays, **more)["answers"]]

    def _reply(
        self, way: str, arrays: Sequence[NDArray[Any]], *, before: Sequence[Answer] = (), **stated: Any
    ) -> Mapping[str, Any]:
        """Ask; a halt and a failure get the answers of this message, and of the messages before it."""
        head = {"ask": way, "codes": self.metric.response == "labels"}
        head |= {name: one for name, one in stated.items() if one is not None}
        try:
            return self._transport.ask(head, arrays)
        except (Halted, ModelError) as error:
            answers = [*before, *(None if one is None else _answer(one) for one in error.answers)]
            problem: BaseException = ModelError(str(error), answers)
            if isinstance(error, Halted):
                problem = Halted(str(error), reason=error.reason, history=self.history(), answers=answers)
        raise problem


def _answer(told: Mapping[str, Any]) -> Answer:
    return Answer(**{name: told[name] for name in _FIELDS})


def _checked(name: str) -> str:
    return checked_names([name], 1)[0]
