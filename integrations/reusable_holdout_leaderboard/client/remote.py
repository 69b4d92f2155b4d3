"""A guard on a server: a team's loop runs on a machine without the labels."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from reusable_holdout_box.remote import RemoteHoldout, history_frame

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout.guard import Answer, Choice
from reusable_holdout.guard.kinds.stated import checked_names, checked_prior, checked_priors
from reusable_holdout.metrics import Metric
from reusable_holdout.plan import Plan
from reusable_holdout.slips import checked_call
from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.files.forms import Expected, table_of_csv
from reusable_holdout_leaderboard.rules import Rules

__all__ = ["BoardHoldout"]

_PAGE = 10_000
_KIND = "claim"  # kind of all questions, as in the history


class BoardHoldout(RemoteHoldout, schemes=("http", "https")):
    """A team's view of a leaderboard, with the interface of the local guard.

    Predictions that were sent before get the recorded answer, free. So a question is repeated when the connection
    breaks, and it is charged at most once.

    Parameters
    ----------
    url : str
        Address of the server, or of one of its competitions: ``http://host:8000`` or ``http://host:8000/c/name``.
    token : str
        Token of the team.
    patience_seconds : float
        Time to try again while the server cannot be reached, is busy or asks to wait.

    Attributes
    ----------
    rules : Rules
    metric : Metric
    policy : str
    plan : Plan
        Plan of the guard, which all teams share.
    expected : Expected
        Form of predictions; without ids, which are :attr:`ids`.
    team : str

    Raises
    ------
    HoldoutError
        If no team has the token, or the server cannot be reached.

    Notes
    -----
    Unlike the local guard, a board knows a question by its predictions alone: with another prior they get the recorded
    answer. Queries are shared by all teams; charges are the team's own. The cost of an answer is only in
    :meth:`history`, so its `nats` here is NaN. After a rotation there are other rows: make a new object.
    """

    policy = "claims"

    @checked_call
    def __init__(self, url: str, token: str, *, patience_seconds: float = 60.0) -> None:
        self._connection = Connection(url, token, patience_seconds=patience_seconds)
        self._made_of = (url, token, patience_seconds)
        try:
            me, about = self._connection.get("me"), self._connection.get("competition")
        except BaseException:
            self._connection.close()
            raise
        self.team = str(me["name"])
        self.rules = Rules.from_dict(about["rules"])
        self.metric: Metric = self.rules.made_metric()
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
        prior : float
            The score that the team claims, from rows of its own. Every board needs it.
        name : str
            Name of the submission on the board.
        anew : bool
            True to ask even if these predictions were answered before, perhaps to another team with another claim. The
            team pays for it.

        Raises
        ------
        Halted
            If all queries are asked and this one is new.
        InputError
            If the input does not fit; nothing was asked and nothing was charged.
        LimitError, ClosedError
            If the team has nothing left, or the competition takes nothing new.
        HoldoutError
            If the competition is blind: the submission is scored, and its score is hidden.
        """
        return self._ask(self.expected.canonical(predictions), self._stated(prior), name, anew=anew)

    @checked_call
    def evaluate_many(
        self, predictions: Any, priors: ArrayLike | None = None, *, names: Sequence[str] | None = None
    ) -> list[Answer]:
        """Ask several questions, one after another.

        Raises
        ------
        Halted
            If the queries run out on the way; the answers before that are in its `answers`.
        InputError, LimitError, ClosedError, HoldoutError
            As for one question. If one of them does not fit, nothing was asked. If a limit ends them, the answers
            before that are recorded, and free when they are asked again.
        """
        forms = self.expected.canonical_many(predictions)
        metric, count = self.metric, len(forms)
        stated: Any = [None] * count
        if priors is not None:
            stated = checked_priors(priors, count, metric.lower, metric.upper, metric.name).tolist()
        called = checked_names(names, count)
        answers: list[Answer] = []
        for form, prior, name in zip(forms, stated, called, strict=True):
            answers.append(self._ask(form, prior, name, before=answers))
        return answers

    # ---- questions that a board does not answer

    def reveal_predictions(self, *_: Any, **__: Any) -> Answer:
        """Refuse: a board tells no value on request.

        Raises
        ------
        InputError
            In any case; nothing was asked.
        """
        raise _not_of_a_board("reveals a value")

    def compare_predictions(self, *_: Any, **__: Any) -> Answer:
        """Refuse: a board compares no submissions on request, as :meth:`reveal_predictions`.

        Two scores are certified to differ where their intervals do not overlap.
        """
        raise _not_of_a_board("compares two models")

    def choose_predictions(self, *_: Any, **__: Any) -> Choice:
        """Refuse: a board chooses nothing, as :meth:`reveal_predictions`."""
        raise _not_of_a_board("chooses among candidates")

    def final_predictions(self, *_: Any, **__: Any) -> Any:
        """Refuse: only organisers make final standings, as :meth:`reveal_predictions`."""
        raise _not_of_a_board("gives a final")

    # ---- read

    def history(self) -> pd.DataFrame:
        """Return everything that was released to all teams, in order; empty while the competition is blind.

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
    def charges_left(self) -> int | None:
        """Charges that the team has left; None while the competition is blind."""
        left = self._connection.get("me")["charges_left"]
        return None if left is None else int(left)

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

    def _stated(self, prior: float | None) -> float | None:
        metric = self.metric
        return None if prior is None else checked_prior(prior, metric.lower, metric.upper, metric.name)

    def _ask(
        self,
        form: NDArray[Any],
        prior: float | None,
        name: str,
        *,
        anew: bool = False,
        before: Sequence[Answer] = (),
    ) -> Answer:
        """Send a file in the order of the rows; `before` are the answers that a halt shall carry."""
        values = self.expected.decoded(form)
        if values.ndim < len(self.expected.columns) == 2:  # of two probabilities only the second is canonical
            values = np.stack([1.0 - values, values], axis=1)
        rows = values.reshape(
            len(values), -1
        ).tolist()  # floats are written so that they are read without loss
        content = table_of_csv([self.expected.columns, *rows])
        data = {"in_order": "yes", "name": name} | ({"anew": "yes"} if anew else {})
        if prior is not None:
            data["claimed"] = repr(prior)
        files = {"file": ("predictions.csv", content)}
        try:
            found = self._connection.post("submissions", repeatable=True, files=files, data=data)
        except Halted as halt:
            problem = self._halt(str(halt), halt.reason, before)
        else:
            return self._answer(found)
        raise problem

    def _answer(self, found: Mapping[str, Any]) -> Answer:
        if found["value"] is None:
            raise HoldoutError("the competition is blind: the submission is scored, and its score is hidden")
        same = ("value", "charged", "low", "high", "prior", "query", "charges_left", "replayed", "threshold")
        told = {one: found[one] for one in (*same, "name", "told")}
        return Answer(**told, kind=_KIND, nats=math.nan)

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._connection.get("status")
        return status


def _not_of_a_board(what: str) -> InputError:
    return InputError(
        f"a guard beside the labels {what}, a board does not, because each additional answer to one team would widen "
        "the intervals of all; nothing was asked; ask with evaluate_predictions or evaluate_many"
    )
