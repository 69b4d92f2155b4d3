"""The client of a guard in another process: in a box on this machine, or on a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout import Answer, Choice, Difference
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, HoldoutError, InputError, ModelError, printable
from reusable_holdout.guard.subjects import (
    checked_names,
    checked_priors,
    checked_tolerances,
    is_model,
    is_several,
)
from reusable_holdout.guard.worse import gate_or_worse
from reusable_holdout.metrics import described_metric
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.judged import Judge, JudgedScores
from reusable_holdout.metrics.predictions import ClassCoder, Predictions
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call
from reusable_holdout_box.transport import transport_to

__all__ = ["RemoteHoldout"]

_ROOM = 4_096  # bytes reserved in a message for its JSON object, and as many for each question's name
_FIELDS = set(Answer._fields) - {"guardrails"}
_COLUMNS = [
    *("query", "view", "metric", "name", "series", "prior", "value", "low", "high", "threshold", "outcome"),
    *("charged", "way", "told", "nats", "asked", "paired", "charges_left", "asked_at", "measured"),
]


def _told(name: str) -> Any:
    """Return a property that asks the guard for the current value of a public number, such as the charges left."""
    return property(lambda remote: remote._transport.ask({"ask": "status"})[name])


class RemoteHoldout:
    """Client for a guard in another process, which keeps the labels away from the process that asks.

    ``RemoteHoldout("unix:///srv/box/socket")`` asks a box on this machine, ``RemoteHoldout("http://host:8000", token)``
    a leaderboard. It has the methods of :class:`reusable_holdout.ReusableHoldout` for questions about predictions. If a
    question is asked again, the recorded answer is repeated and free. So if the connection breaks, the question can be
    sent again, and it is charged at most once.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``, ``http://host:8000`` or ``https://host/c/name``.
    token : str
        Token of the team, for a leaderboard. A box takes none, because the kernel tells it which user asks.
    patience_seconds : float
        Time for which to try again while nobody answers.

    Attributes
    ----------
    metric : Metric
    plan : Plan
        Plan of the guard, which everyone who asks shares.
    rows : int
        Number of rows.
    digest : str or None
        Digest of the rows, by which they are recognised; None for a leaderboard, which does not tell it.
    allow : tuple of str
        Ways to ask that the owner allows, such as "evaluate" and "compare".
    classes : numpy.ndarray or None
        Sorted classes. None if the set of labels is private, and for metrics of real values.
    private_labels : {"text", "numbers"} or None
        Kind of the labels, if the set of labels is private; else None.
    about : mapping
        All facts about the guard that are public and fixed, as they were received.
    answered : int
        Number of the last answer.
    queries_asked, queries_left, charges_left : int
        Queries that were asked, and queries and charges that are left, counted over everyone who asks. `charges_left`
        is None while a competition is blind.
    epoch : int
        Number of the guard's set of rows, counted from 1.
    halted : bool
        True if no new question will be answered.
    halt_reason : str or None
        "charges" or "queries" if these ran out, "final" if a final was given.

    Raises
    ------
    InputError
        If the address has none of these forms, or a token is given for a box.
    HoldoutError
        If nobody answers there, or this user or token may not ask.

    Warns
    -----
    NoWallWarning
        If a box runs as this user, or this user is root.

    Notes
    -----
    A leaderboard answers only evaluations. It recognises a question by its predictions: if they are sent again with
    another prior, the earlier answer is repeated. Answers of a leaderboard have NaN as `nats`; the cost of a charged
    answer is in :meth:`history`.
    """

    answered, queries_asked, queries_left = _told("answered"), _told("queries_asked"), _told("queries_left")
    charges_left, epoch = _told("charges_left"), _told("epoch")
    halted, halt_reason = _told("halted"), _told("halt_reason")

    has_features: ClassVar[bool] = False
    """False, because questions are about predictions; a remote guard runs no model."""

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
        self.rows, self.digest = about["rows"], about["digest"]
        self.allow, self.private_labels = tuple(about["allow"]), about["private_labels"]
        self.classes = None if about["classes"] is None else np.array(about["classes"])

    # ---- ask

    @checked_call
    def evaluate(
        self, subject: Any, *, prior: Any = None, tolerance: Any = None, name: Any = None, anew: bool = False
    ) -> Any:
        """Ask how good predictions are; see :meth:`reusable_holdout.ReusableHoldout.evaluate`.

        The subject may be predictions, a difference of two predictions, or a list of predictions. A list that is too
        long for one message is sent in several.

        Raises
        ------
        Halted
            If a budget has run out and a question is new. Its `answers` are the answers given before the halt.
        InputError
            If the input does not fit, or the owner does not allow the question; nothing was asked. Models are refused,
            because they would run in the process that holds the labels.
        HoldoutError
            If nobody answers; the same question may be asked again, and is charged once at most.
        """
        if anew and (isinstance(subject, Difference) or is_several(subject)):
            raise InputError(
                "anew= is for one set of predictions on a board; got several, or a difference; nothing was asked; "
                "leave it out"
            )
        if isinstance(subject, Difference):
            return self.compare(subject.new, subject.old, prior=prior, tolerance=tolerance, name=name)
        if is_several(subject):
            return self._evaluated(subject, prior, tolerance, name)
        more = {"prior": self._prior(prior), "tolerance": tolerance, "anew": anew or None}
        return self._asked("evaluate", [self._prepared(subject)], name=_checked(name), **more)[0]

    def _evaluated(self, subjects: Sequence[Any], priors: Any, tolerances: Any, names: Any) -> list[Answer]:
        arrays = self._prepared_many(subjects)
        called = checked_names(names, len(arrays))
        stated = self._priors(priors, len(arrays))
        limits = None
        if tolerances is not None:
            checked_tolerances(tolerances, len(arrays), Unit.of(self.metric))
            limits = np.broadcast_to(np.asarray(tolerances, dtype=np.float64), len(arrays)).tolist()
        answers: list[Answer] = []
        for part in self._parts(arrays):
            more = {"prior": stated[part], "tolerance": limits and limits[part]}
            answers += self._asked("many", arrays[part], before=answers, name=called[part], **more)
        return answers

    @checked_call
    def compare(
        self,
        new: Any,
        old: Any,
        *,
        prior: float | None = None,
        tolerance: float | None = None,
        name: Any = None,
    ) -> Answer:
        """Ask how much better new predictions are than old; see :meth:`reusable_holdout.ReusableHoldout.compare`."""
        both = [self._prepared(one) for one in (new, old)]
        stated = self._prior(prior, paired=True)
        return self._asked("compare", both, prior=stated, tolerance=tolerance, name=_checked(name))[0]

    @checked_call
    def gate(
        self,
        subject: Any,
        at_least: float,
        *,
        tolerance: float | None = None,
        guardrails: Any = None,
        tell_worse: bool = False,
        name: Any = None,
    ) -> Answer:
        """Ask if predictions, or a difference, reach a value; see :meth:`reusable_holdout.ReusableHoldout.gate`.

        Guardrails are refused, because they need other metrics of the rows, which only the guard's own process has.
        """
        if guardrails is not None:
            raise InputError(
                "a remote guard's gate takes no guardrails, because they need other metrics of its rows; got some; "
                "nothing was asked; leave guardrails= out, or let the guard's owner ask"
            )
        if tell_worse is not False:
            return gate_or_worse(tell_worse, self.gate, subject, at_least, name, tolerance=tolerance)
        paired = isinstance(subject, Difference)
        given = [self._prepared(one) for one in (subject if paired else [subject])]
        more = {"at_least": self._prior(at_least, paired=paired), "tolerance": tolerance}
        return self._asked("gate", given, name=_checked(name), **more)[0]

    @checked_call
    def reveal(self, subject: Any, *, prior: float | None = None, name: Any = None) -> Answer:
        """Ask for the holdout's own value; see :meth:`reusable_holdout.ReusableHoldout.reveal`."""
        return self._asked(
            "reveal", [self._prepared(subject)], prior=self._prior(prior), name=_checked(name)
        )[0]

    @checked_call
    def choose(self, subjects: Sequence[Any], priors: Any, *, name: Any = None) -> Choice:
        """Ask which of several candidates is best; see :meth:`reusable_holdout.ReusableHoldout.choose`."""
        if not is_several(subjects):
            raise InputError(
                "a choice must be among a list of candidates; got one subject; nothing was asked; pass a list"
            )
        arrays = self._prepared_many(subjects)
        stated = self._priors(priors, len(arrays))
        reply = self._reply("choose", arrays, prior=stated, name=_checked(name))
        return Choice(int(reply["index"]), _answer(reply["answers"][0]), float(reply["others"]))

    @checked_call
    def final(self, subject: Any, *, name: Any = None) -> Any:
        """Ask for the certified value at the end of a project; see :meth:`reusable_holdout.ReusableHoldout.final`."""
        several = is_several(subject)
        given = list(subject) if several else [subject]
        answers = self._asked("final", [self._prepared(one) for one in given], name=_checked(name))
        return answers if several else answers[0]

    # ---- what is known

    def history(self) -> pd.DataFrame:
        """Return all answers that anyone has received; see :meth:`reusable_holdout.ReusableHoldout.history`.

        While a competition is blind the table is empty.
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
        frame["measured"] = frame["measured"].astype("float64")
        frame["asked_at"] = pd.to_datetime(frame["asked_at"], utc=True, format="ISO8601")
        return frame

    @cached_property
    def ids(self) -> tuple[Any, ...] | None:
        """Ids of the rows, in the order that predictions must have; None if the rows have no ids."""
        count = self.about["ids"]
        if count is None:
            return None
        found: list[Any] = []
        while len(found) < count:
            page = self._transport.ask({"ask": "ids", "after": len(found)})["ids"]
            if not page:
                raise HoldoutError("the guard must tell the ids of all rows; it did not; nothing was asked")
            found += page
        return tuple(found)

    @property
    def class_set(self) -> NDArray[Any] | str | None:
        """Value to pass as ``classes=`` to :meth:`Metric.measure`, to score other rows as the guard scores its own."""
        return self.classes if self.private_labels is None else "private"

    def halt(self) -> Halted:
        """Return the exception that a new question raises after a halt; before a halt its reason is "queries"."""
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

    def __reduce__(self) -> tuple[Any, ...]:  # for worker processes; the pickle holds the token
        url, token, patience = self._made_of
        return partial(type(self), patience_seconds=patience), (url, token)

    # ---- inside

    @cached_property
    def _form(self) -> Predictions | JudgedScores:
        """Form that predictions must have; they are checked before they are sent.

        The checks and the messages are the same as in the guard.
        """
        if isinstance(self.metric.kernel, Judge):
            return JudgedScores(Ids(list(self.ids or ())), self.metric.kernel)
        coder = None
        if self.classes is not None:
            coder = ClassCoder(self.classes, "text" if self.classes.dtype.kind == "U" else "numbers")
        return Predictions(self.metric.response, rows=self.rows, coder=coder, answers=self.private_labels)

    def _prepared(self, predictions: Any) -> NDArray[Any]:
        if is_model(predictions):
            raise InputError(
                "a remote guard takes predictions only, because a model would run where the labels are; got a model; "
                "nothing was asked; predict here, and ask about the predictions"
            )
        prepared = self._form.prepare(predictions)
        return self._form.aligned(predictions) if isinstance(self._form, JudgedScores) else prepared

    def _prepared_many(self, predictions: Any) -> list[NDArray[Any]]:
        prepared = self._form.prepare_many(predictions)
        form = self._form
        return (
            [form.aligned(one) for one in predictions] if isinstance(form, JudgedScores) else list(prepared)
        )

    def _prior(self, prior: float | None, *, paired: bool = False) -> float | None:
        if prior is None:
            return None
        checked_priors(prior, 1, Unit.of(self.metric, paired=paired), self.metric.name, several=False)
        return float(prior)

    def _priors(self, priors: ArrayLike | None, count: int) -> list[float]:
        checked_priors(priors, count, Unit.of(self.metric), self.metric.name, several=True)
        stated: list[float] = np.asarray(priors, dtype=np.float64).tolist()
        return stated

    def _parts(self, arrays: Sequence[NDArray[Any]]) -> Iterator[slice]:
        """Yield slices of a list of predictions, each short enough for one message."""
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
        """Send a question, and return the reply.

        If the guard halts or a model fails, the exception holds all answers so far, also those to earlier messages.
        """
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


def _checked(name: str | None) -> str:
    return checked_names([name or ""], 1)[0]
