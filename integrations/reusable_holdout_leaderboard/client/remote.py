"""A guard on a server: the loop runs where the labels are not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from reusable_holdout_box.remote import RemoteHoldout, history_frame

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError
from reusable_holdout.guard import Answer, Choice
from reusable_holdout.guard.kinds.stated import checked_names, checked_prior, checked_priors
from reusable_holdout.guard.kinds.table import POLICIES
from reusable_holdout.metrics import Metric
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call
from reusable_holdout_leaderboard.client.connection import Connection, raised_by
from reusable_holdout_leaderboard.files.forms import Expected
from reusable_holdout_leaderboard.rules import Rules

__all__ = ["BoardHoldout"]

_PAGE = 10_000
_MOST_TOGETHER = 200
_MOST_NUMBERS = 400_000  # of one request: some megabytes of JSON


class BoardHoldout(RemoteHoldout, schemes=("http", "https")):
    """A team's view of a leaderboard, with the interface of the local guard.

    A loop that asks a :class:`reusable_holdout.ReusableHoldout` asks this as well. Predictions that were sent before
    get the recorded answer, free; so a question is asked again when the connection breaks, and is charged once at most.

    Parameters
    ----------
    url : str
        Of the server, or of one of its competitions: ``http://host:8000`` or ``http://host:8000/c/name``.
    token : str
        Of the team.
    patience_seconds : float
        How long to try again while the server cannot be reached, is busy or asks to wait.

    Attributes
    ----------
    rules : Rules
    metric : Metric
    policy : str
    plan : Plan
        Of the guard, which all teams share.
    expected : Expected
        Form of predictions; without ids, which are :attr:`ids`.
    team : str

    Raises
    ------
    HoldoutError
        If the token is nobody's, or the server cannot be reached.

    Notes
    -----
    Unlike the local guard, a board knows a question by its predictions alone: with another prior they get the answer
    they got. The budget is that of all teams. What a charged answer cost, and its cell, is in :meth:`history` alone:
    its `nats` here is NaN. After a rotation make a new one: there are other rows.
    """

    @checked_call
    def __init__(self, url: str, token: str, *, patience_seconds: float = 60.0) -> None:
        self._connection = Connection(url, token, patience_seconds=patience_seconds)
        self._made_of = (url, token, patience_seconds)
        try:
            me, about = self._connection.get("me"), self._connection.get("competition")
        except BaseException:
            self._connection.close()
            raise
        self.team, self._team_id = str(me["name"]), int(me["id"])
        self.rules = Rules.from_dict(about["rules"])
        self.metric: Metric = self.rules.made_metric()
        self.policy = str(self.rules.policy)
        self._kind = POLICIES[self.rules.policy].name
        self.plan = Plan.kept(about["plan"])
        form = about["submission"]
        self.expected = Expected(
            ids=None,
            rows=form["rows"],
            id_column=form["id_column"],
            columns=tuple(form["prediction_columns"]),
            response=self.metric.response,
            classes=self.rules.classes,
            max_bytes=form["max_bytes"],
        )

    # ---- ask

    @checked_call
    def evaluate_predictions(
        self, predictions: Any, *, prior: float | None = None, name: str = "", anew: bool = False
    ) -> Answer:
        """Ask about predictions for the competition's rows, in their order.

        Parameters
        ----------
        predictions : array-like of shape (rows,) or (rows, classes)
        prior : float, optional
            The team's own validation score. A board of claims needs it; a ladder takes none, here as where the labels
            lie, and refuses one; otherwise it is by default the team's best so far.
        name : str
            What the board calls it.
        anew : bool
            On a board of claims: ask though these predictions were answered before, perhaps to another team that
            claimed something else of them, at this team's own expense.

        Raises
        ------
        Halted
            If a budget has run out and the question is new.
        InputError
            If the input does not fit; nothing was asked and nothing was charged.
        LimitError, ClosedError
            If the team has nothing left, or the competition takes nothing new.
        HoldoutError
            If the competition is blind: the predictions count, and no score is told.
        """
        stated = self._stated(prior)
        body = {"predictions": self._form(predictions).tolist(), "prior": stated, "name": name}
        if anew:
            self._check_anew()
            body["anew"] = True  # left out otherwise, for older servers do not know it
        try:
            reply = self._connection.post("evaluate", repeatable=True, json=body)
        except Halted as halt:
            problem = self._halt(str(halt), halt.reason, [])
        else:
            return self._answers(reply)[0]
        raise problem

    @checked_call
    def evaluate_many(
        self, predictions: Any, priors: ArrayLike | None = None, *, names: Sequence[str] | None = None
    ) -> list[Answer]:
        """Ask questions that depend on no answer of one another: faster than one by one.

        Raises
        ------
        Halted
            If a budget runs out on the way; the answers before that are in its `answers`.
        BudgetError
            If more is asked than queries are left; nothing was answered and nothing was charged.
        InputError, LimitError, ClosedError, HoldoutError
            As for one question. Of a batch that does not fit nothing was asked; of one that a limit ends, the answers
            before that are the team's, and free when they are asked again.
        """
        forms = list(map(self.expected.decoded, self.expected.canonical_many(predictions)))
        stated = self._stated_many(priors, len(forms))
        called = checked_names(names, len(forms))
        self._check_left(forms)
        answers: list[Answer] = []
        for part in _parts(len(forms), self.expected.rows * max(1, len(self.expected.columns))):
            body: dict[str, Any] = {"batch": [one.tolist() for one in forms[part]], "names": called[part]}
            if priors is not None:
                body["priors"] = stated[part]
            reply = self._connection.post("evaluate", repeatable=True, json=body)
            answers += self._answers(reply)
            self._raise_stopped(reply["stopped"], answers)
        return answers

    # ---- what a board does not answer

    def reveal_predictions(self, *_: Any, **__: Any) -> Answer:
        """Refuse: a board does not tell values that are asked for.

        Raises
        ------
        InputError
            In any case; nothing was asked.
        """
        raise _not_of_a_board("reveals a value")

    def compare_predictions(self, *_: Any, **__: Any) -> Answer:
        """Refuse: a board compares no two submissions, also not two of one team; as :meth:`reveal_predictions`.

        Two scores are certified to differ where their intervals do not overlap.
        """
        raise _not_of_a_board("compares two models")

    def choose_predictions(self, *_: Any, **__: Any) -> Choice:
        """Refuse: a board does not choose; as :meth:`reveal_predictions`."""
        raise _not_of_a_board("chooses among candidates")

    def final_predictions(self, *_: Any, **__: Any) -> Any:
        """Refuse: final standings are its organisers' affair; as :meth:`reveal_predictions`."""
        raise _not_of_a_board("gives a final")

    # ---- what is known

    def history(self) -> pd.DataFrame:
        """Everything that was released, to all teams, in order; empty while the competition is blind.

        Returns
        -------
        pandas.DataFrame
            As :meth:`reusable_holdout.ReusableHoldout.history`.
        """
        rows: list[dict[str, Any]] = []
        while True:
            page = self._connection.get("history", after=rows[-1]["query"] if rows else 0, limit=_PAGE)
            rows += page
            if len(page) < _PAGE:
                return history_frame(rows)

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes; None for metrics of real values."""
        return None if self.rules.classes is None else np.array(self.rules.classes)

    @cached_property
    def ids(self) -> tuple[str, ...] | None:
        """Ids of the rows, in the order of predictions; None if they have none."""
        if self.rules.id_column is None:
            return None
        ids: list[str] = []
        while len(ids) < self.expected.rows:  # page by page
            text = self._connection.get("sample", after=len(ids))
            _, *lines = csv.reader(io.StringIO(text, newline=""))
            if not lines:
                raise InputError("the server must tell the ids of all rows; it did not; nothing was asked")
            ids += [line[0] for line in lines]
        return tuple(ids)

    # ---- life

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<RemoteHoldout: {self.rules.slug} at {self._connection.url}, team {self.team!r}>"

    def __reduce__(self) -> tuple[Any, ...]:  # for worker processes; it carries the token
        url, token, patience = self._made_of
        return partial(type(self), patience_seconds=patience), (url, token)

    # ---- inside

    @property
    def _where(self) -> str:
        return self._connection.url

    def _form(self, predictions: Any) -> NDArray[Any]:
        """Predictions as they travel, checked as the server will."""
        return self.expected.decoded(self.expected.canonical(predictions))

    def _stated(self, prior: float | None) -> float | None:
        if prior is None:
            return None
        if self.policy == "ladder":
            raise InputError("a ladder compares with the team's best so far by itself; leave prior out")
        return checked_prior(prior, self.metric.lower, self.metric.upper, self.metric.name)

    def _check_anew(self) -> None:
        if self.policy != "claims":
            raise InputError(
                f"asking anew is for boards of claims; this one's policy is {self.policy}; nothing was asked; leave "
                "anew out"
            )

    def _stated_many(self, priors: ArrayLike | None, count: int) -> list[float | None]:
        if priors is None:
            return [None] * count
        metric = self.metric
        checked = checked_priors(priors, count, metric.lower, metric.upper, metric.name)
        return [self._stated(one) for one in checked.tolist()]

    def _answers(self, reply: Mapping[str, Any]) -> list[Answer]:
        found = reply["submissions"]
        if any(one["value"] is None for one in found):
            raise HoldoutError("the competition is blind: the predictions count, and no score is told yet")
        return [
            Answer(
                value=one["value"],
                charged=one["charged"],
                low=one["low"],
                high=one["high"],
                prior=one["prior"],
                query=one["query"],
                charges_left=reply["charges_left"],
                replayed=one["replayed"],
                threshold=one["threshold"],
                name=one["name"],
                kind=self._kind,
                nats=math.nan if one["charged"] or self.policy == "claims" else 0.0,
                told=one["told"],
            )
            for one in found
        ]

    def _raise_stopped(self, stopped: Mapping[str, Any] | None, answers: list[Answer]) -> None:
        if stopped is None:
            return
        if stopped["code"] == "halted":
            raise self._halt(stopped["message"], stopped["details"].get("reason", ""), answers)
        raise raised_by(stopped)

    def _check_left(self, forms: Sequence[NDArray[Any]]) -> None:
        """Refuse a batch of which some cannot be answered, whichever of it were answered before."""
        asked = len({self.expected.digest(one) for one in forms})
        status = self._status()
        left = int(status["queries_left"])
        if status["halted"] or asked <= left:
            return
        rows = self._connection.get("board", team=self._team_id)  # of which older servers send all
        own = next((row for row in rows if row["team_id"] == self._team_id), None)
        if asked - (0 if own is None else int(own["submissions"])) > left:
            raise BudgetError(
                f"{asked} queries asked, {left} left; nothing was asked and nothing was charged"
            )

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._connection.get("status")
        return status


def _not_of_a_board(what: str) -> InputError:
    """Error of what a board does not answer."""
    return InputError(
        f"a guard that lies with the labels {what}, a board does not: what one team is told would widen the intervals "
        "of all; nothing was asked; ask with evaluate_predictions or evaluate_many"
    )


def _parts(count: int, numbers: int) -> Iterator[slice]:
    """Slices of a batch of so many, each with so many numbers; each slice is one request."""
    together = max(1, min(_MOST_TOGETHER, _MOST_NUMBERS // numbers))
    for start in range(0, count, together):
        yield slice(start, start + together)
