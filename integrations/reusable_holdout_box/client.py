"""A guard in a box, asked over a Unix socket: the loop runs under another user than the labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import HoldoutError, InputError, ModelError
from reusable_holdout.guard import Answer, Choice
from reusable_holdout.guard.kinds.stated import checked_names, checked_prior, checked_priors
from reusable_holdout.metrics import described_metric
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.judged import Judge, JudgedScores
from reusable_holdout.metrics.predictions import ClassCoder, Predictions
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call
from reusable_holdout_box.connection import Connection, HaltedThere
from reusable_holdout_box.remote import RemoteHoldout, history_frame

__all__ = ["BoxHoldout", "NoWallWarning", "public_status"]

_ROOM = 4_096  # bytes of a message beside its arrays, and for each of its names
_FIELDS = set(Answer._fields) - {"guardrails"}


class NoWallWarning(UserWarning):
    """A box runs as the user who asks, or that user is root: nothing keeps the asker from the labels."""


class BoxHoldout(RemoteHoldout, schemes=("unix",)):
    """A guard in a box, with the interface of the local one as far as its owner allows.

    Parameters
    ----------
    url : str
        ``unix:///path/of/socket``.
    token : str
        None is needed: the kernel tells the box who asks.
    patience_seconds : float
        How long to try again while nobody answers there.

    Attributes
    ----------
    metric : Metric
    policy : str
    plan : Plan
    rows : int
    allow : tuple of str
        Ways to ask that its owner allows, such as "evaluate" and "compare".
    verdict_only : bool
        Whether answers tell only if they were charged: then `value`, `low`, `high`, `threshold` and `nats` are NaN.

    Raises
    ------
    InputError
        If the address is none, or a token came.
    HoldoutError
        If nobody answers there, or this user may not ask.

    Warns
    -----
    NoWallWarning
        If the box runs as this user, or this user is root.
    """

    @checked_call
    def __init__(self, url: str, token: str = "", *, patience_seconds: float = 60.0) -> None:
        if token:
            raise InputError("a box knows who asks by the kernel's word, and takes no token; leave it out")
        self._connection = Connection(url, patience_seconds=patience_seconds)
        self._made_of = (url, patience_seconds)
        try:
            about = self._connection.ask({"ask": "about"}).head
        except BaseException:
            self._connection.close()
            raise
        self.metric = described_metric(about["metric"])
        self.policy, self.rows = str(about["policy"]), int(about["rows"])
        self.plan = Plan.kept(about["plan"])
        self.digest = str(about["digest"])
        self.allow, self.verdict_only = tuple(about["allow"]), bool(about["verdict_only"])
        self.private_labels = about.get("private_labels")
        self._about = about
        _warn_of_no_wall(self._connection.server_uid)

    # ---- ask

    @checked_call
    def evaluate_predictions(
        self, predictions: Any, *, prior: float | None = None, tolerance: float | None = None, name: str = ""
    ) -> Answer:
        """Ask about predictions for the holdout's rows, as of the local guard.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit, or its owner does not allow it; nothing was asked and nothing was charged.
        HoldoutError
            If nobody answers; the same question may be asked again, and is charged once at most.
        """
        stated = {"prior": self._stated(prior), "tolerance": tolerance, "name": _named(name)}
        return self._asked("evaluate", [self._form.prepared(predictions)], stated)[0]

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

        One that is longer than a message goes in several, each of them a batch.

        Raises
        ------
        Halted
            If a budget runs out on the way; the answers before that are in its `answers`.
        BudgetError, InputError, HoldoutError
            As for one question; of a batch that goes in several messages those before are answered.
        """
        forms = self._form.prepared_many(predictions)
        called, stated = checked_names(names, len(forms)), self._stated_many(priors, len(forms))
        limits = (
            None if tolerances is None else checked_priors(tolerances, len(forms), 0.0, np.inf, "a tolerance")
        )
        answers: list[Answer] = []
        for part in self._parts(forms):
            more = {
                "priors": None if stated is None else stated[part].tolist(),
                "tolerances": None if limits is None else limits[part].tolist(),
                "names": called[part],
            }
            answers += self._asked("many", forms[part], more, before=answers)
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
        """Ask how much better predictions are; as :meth:`reusable_holdout.ReusableHoldout.compare_predictions`.

        Raises
        ------
        Halted, InputError, HoldoutError
            As for :meth:`evaluate_predictions`.
        """
        span = self.metric.upper - self.metric.lower
        if prior is not None:
            prior = checked_prior(prior, -span, span, f"differences of {self.metric.name}")
        both = [self._form.prepared(one) for one in (predictions, incumbent)]
        return self._asked("compare", both, {"prior": prior, "tolerance": tolerance, "name": _named(name)})[0]

    @checked_call
    def reveal_predictions(self, predictions: Any, *, prior: float | None = None, name: str = "") -> Answer:
        """Ask for the holdout's own value, if the box's owner allows it; as the guard's."""
        stated = {"prior": self._stated(prior), "name": _named(name)}
        return self._asked("reveal", [self._form.prepared(predictions)], stated)[0]

    @checked_call
    def choose_predictions(self, predictions: Any, priors: Any, *, name: str = "") -> Choice:
        """Ask which of several is best, if the box's owner allows it; as the guard's."""
        forms = self._form.prepared_many(predictions)
        stated = self._stated_many(priors, len(forms))
        more = {"priors": None if stated is None else stated.tolist(), "name": _named(name)}
        reply = self._reply("choose", forms, more, [])
        return Choice(int(reply["index"]), _answer(reply["answers"][0]), float(reply["others"]))

    @checked_call
    def final_predictions(self, predictions: Any, *, name: str = "") -> Any:
        """Ask for the certified end of a project, if the box's owner allows it; as the guard's."""
        several = isinstance(predictions, list | tuple) and len(predictions) and np.ndim(predictions[0]) > 0
        given = list(predictions) if several else [predictions]
        answers = self._asked("final", [self._form.prepared(one) for one in given], {"name": _named(name)})
        return answers if several else answers[0]

    def evaluate(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a model would have to go where the labels are.

        Raises
        ------
        InputError
            In any case; nothing was asked.
        """
        raise _of_a_model("evaluate_predictions")

    def compare(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse; as :meth:`evaluate`."""
        raise _of_a_model("compare_predictions")

    # ---- what is known

    def history(self) -> pd.DataFrame:
        """Everything that was released, to all who ask, in order; as :meth:`reusable_holdout.ReusableHoldout.history`.

        Of verdicts the numbers are NaN.
        """
        rows: list[dict[str, Any]] = []
        while True:
            found = self._connection.ask({"ask": "history", "after": rows[-1]["query"] if rows else 0}).head
            rows += found["rows"]
            if len(found["rows"]) < found["page"]:
                return history_frame(rows)

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        known = self._about["classes"]
        return None if known is None else np.array(known)

    @cached_property
    def ids(self) -> tuple[Any, ...] | None:
        """Ids of the rows, in the order of predictions; None if they have none."""
        count = self._about["ids"]
        if count is None:
            return None
        found: list[Any] = []
        while len(found) < count:
            page = self._connection.ask({"ask": "ids", "after": len(found)}).head["ids"]
            if not page:
                raise HoldoutError("a box must tell the ids of all rows; it did not; nothing was asked")
            found += page
        return tuple(found)

    # ---- life

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<RemoteHoldout: {self.metric.name}, {self.rows:,} rows, at {self._where}>"

    def __reduce__(self) -> tuple[Any, ...]:  # for worker processes
        url, patience = self._made_of
        return partial(type(self), patience_seconds=patience), (url,)

    # ---- inside

    @property
    def _where(self) -> str:
        return self._made_of[0]

    def _status(self) -> Mapping[str, Any]:
        return self._connection.ask({"ask": "status"}).head

    @cached_property
    def _form(self) -> _Form:
        return _Form(self)

    def _stated(self, prior: float | None) -> float | None:
        metric = self.metric
        return None if prior is None else checked_prior(prior, metric.lower, metric.upper, metric.name)

    def _stated_many(self, priors: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
        metric = self.metric
        return (
            None if priors is None else checked_priors(priors, count, metric.lower, metric.upper, metric.name)
        )

    def _asked(
        self,
        way: str,
        arrays: Sequence[NDArray[Any]],
        stated: Mapping[str, Any],
        *,
        before: Sequence[Answer] = (),
    ) -> list[Answer]:
        return [_answer(one) for one in self._reply(way, arrays, stated, before)["answers"]]

    def _reply(
        self, way: str, arrays: Sequence[NDArray[Any]], stated: Mapping[str, Any], before: Sequence[Answer]
    ) -> Mapping[str, Any]:
        """Reply to a question; a halt and a failure have the answers of this message, and of those before it."""
        head = {"ask": way, "codes": self._form.has_codes}
        head |= {name: one for name, one in stated.items() if one is not None}
        try:
            return self._connection.ask(head, arrays).head
        except (HaltedThere, ModelError) as error:
            answers = [*before, *(None if one is None else _answer(one) for one in error.answers)]
            problem: BaseException = ModelError(str(error), answers)
            if isinstance(error, HaltedThere):
                problem = self._halt(str(error), error.reason, answers)
        raise problem

    def _parts(self, forms: Sequence[NDArray[Any]]) -> Iterator[slice]:
        """Slices of a batch, each of them one message."""
        room, start, size = self._about["most_bytes"] - _ROOM, 0, 0
        for place, one in enumerate(forms):
            bytes_of_one = one.nbytes + _ROOM
            if place > start and size + bytes_of_one > room:
                yield slice(start, place)
                start, size = place, 0
            size += bytes_of_one
        yield slice(start, len(forms))


class _Form:
    """How predictions travel: checked here as the guard will, in its own words."""

    def __init__(self, remote: BoxHoldout) -> None:
        about, metric = remote._about, remote.metric
        self.has_codes = metric.response == "labels"
        self._form: Predictions | JudgedScores
        if isinstance(metric.kernel, Judge):
            self._form = JudgedScores(Ids(list(remote.ids or ())), metric.kernel)
            return
        coder = None
        if about["classes"] is not None:
            text = isinstance(about["classes"][0], str)
            coder = ClassCoder(np.array(about["classes"]), "text" if text else "numbers")
        answers = remote.private_labels
        self._form = Predictions(metric.response, rows=remote.rows, coder=coder, answers=answers)

    def prepared(self, predictions: Any) -> NDArray[Any]:
        """One question's array."""
        prepared = self._form.prepare(predictions)  # judged scores, too: what does not fit is refused here
        if isinstance(self._form, JudgedScores):
            return self._form.aligned(predictions)
        return prepared

    def prepared_many(self, predictions: Any) -> list[NDArray[Any]]:
        """Arrays of a batch."""
        if not isinstance(self._form, JudgedScores):
            return list(self._form.prepare_many(predictions))
        self._form.prepare_many(predictions)
        several = predictions if isinstance(predictions, list | tuple) else np.asarray(predictions)
        return [self._form.aligned(one) for one in several]


def public_status(url: str) -> dict[str, Any]:
    """What everyone who may ask can know of a box; by its owner, too, who needs no wall.

    Raises
    ------
    HoldoutError
        If nobody answers there.
    """
    with Connection(url, patience_seconds=1.0) as connection:
        about, status = (connection.ask({"ask": what}).head for what in ("about", "status"))
    shown = {name: about[name] for name in ("version", "policy", "rows", "allow", "verdict_only", "digest")}
    shown |= {
        "metric": about["metric"]["name"],
        "queries": about["plan"]["queries"],
        "charges": about["plan"]["charges"],
    }
    return shown | {name: status[name] for name in status}


def _answer(told: Mapping[str, Any]) -> Answer:
    return Answer(**{name: told[name] for name in _FIELDS})


def _named(name: str) -> str:
    return checked_names([name], 1)[0]


def _of_a_model(instead: str) -> InputError:
    return InputError(
        f"a box is asked about predictions, for a model would run where the labels are; nothing was asked; predict "
        f"here, and ask with {instead}"
    )


def _warn_of_no_wall(server: int) -> None:
    if os.geteuid() in {0, server} and server >= 0:
        warnings.warn(
            f"the box runs as user {server}, and this process as user {os.geteuid()}, who can read its labels; a box "
            "is a wall between different users, of whom the one who asks is not root",
            NoWallWarning,
            stacklevel=4,
        )
