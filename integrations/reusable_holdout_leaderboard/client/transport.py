"""The transport of a remote guard to a leaderboard: it sends the guard's messages as HTTP requests."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout_leaderboard.client.connection import Connection
from reusable_holdout_leaderboard.files.forms import Expected, table_of_csv
from reusable_holdout_leaderboard.rules import Rules

__all__ = ["BoardTransport"]

_PAGE = 10_000
_REFUSED = {
    "compare": "compares two models",
    "gate": "answers a gate",
    "reveal": "reveals a value",
    "choose": "chooses among candidates",
    "final": "gives a final",
}


class BoardTransport:
    """A team's connection to a leaderboard.

    :class:`reusable_holdout_box.RemoteHoldout` uses this transport if its address is that of a leaderboard.

    A leaderboard only evaluates predictions. Two questions with the same predictions are the same question, even if
    their priors differ: the second one gets the answer of the first. After a rotation, make a new RemoteHoldout,
    because the board then has other rows.

    Parameters
    ----------
    url : str
        Address of the server, or of one of its competitions: ``http://host:8000`` or ``http://host:8000/c/name``.
    token : str
        Token of the team.
    patience_seconds : float
        How long a request is tried again while the server cannot be reached, is busy or asks to wait.
    """

    def __init__(self, url: str, token: str = "", patience_seconds: float = 60.0) -> None:
        self._connection = Connection(url, token, patience_seconds=patience_seconds)
        self._expected: Expected

    def __repr__(self) -> str:
        return f"<BoardTransport: {self._connection.url}>"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Mapping[str, Any]:
        """Send a message of a remote guard, and return the reply; see :meth:`reusable_holdout_box.Transport.ask`.

        Raises
        ------
        Halted
            If no query is left and the message has a new question. The exception's `answers` are the answers to the
            questions before that one.
        LimitError, ClosedError
            If the team has no submission left, or the competition takes no new submission.
        HoldoutError
            If the server refuses. Also if the competition is blind: the submission is then scored, but the score is
            hidden.
        """
        asked = head["ask"]
        if asked in _REFUSED:
            raise InputError(
                f"a guard that has the labels {_REFUSED[asked]}, a board does not, because each additional answer to "
                "one team would widen the intervals of all teams; nothing was asked; ask with evaluate"
            )
        if asked == "about":
            return self._about()
        if asked == "status":
            status: dict[str, Any] = self._connection.get("status")
            return status | {"charges_left": self._me()["charges_left"]}
        if asked == "history":
            return {"rows": self._connection.get("history", after=head["after"], limit=_PAGE), "page": _PAGE}
        if asked == "ids":
            text = self._connection.get("sample", after=head["after"])
            return {"ids": [line[0] for line in [*csv.reader(io.StringIO(text, newline=""))][1:]]}
        return {"answers": self._answers(head, arrays)}

    # ---- inside

    def _me(self) -> dict[str, Any]:
        me: dict[str, Any] = self._connection.get("me")
        return me

    def _about(self) -> dict[str, Any]:
        team, about = self._me()["name"], self._connection.get("competition")
        rules, form = Rules.from_dict(about["rules"]), about["submission"]
        metric = rules.made_metric()
        self._expected = Expected(
            ids=None,
            rows=form["rows"],
            id_column=form["id_column"],
            columns=tuple(form["prediction_columns"]),
            response=metric.response,
            classes=rules.classes,
            max_bytes=form["max_bytes"],
        )
        return {
            "metric": metric.describe(),
            "plan": about["plan"],
            "classes": rules.classes,
            "private_labels": None,
            "rows": form["rows"],
            "ids": None if rules.id_column is None else form["rows"],
            "digest": None,
            "allow": ["evaluate"],
            "most_bytes": math.inf,
            "team": team,
            "competition": rules.slug,
        }

    def _answers(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> list[dict[str, Any]]:
        """Submit the predictions one after another, and return the answers.

        Each file has the order of the competition's rows, and no ids.
        """
        if "tolerance" in head:
            raise InputError("a board takes no tolerance for one question; leave it out; nothing was asked")
        several = head["ask"] == "many"
        stated = [head.get("prior"), head.get("name", "")]
        priors, names = stated if several else ([one] for one in stated)
        answers: list[dict[str, Any]] = []
        for canonical, prior, name in zip(arrays, priors, names, strict=True):
            form = {"in_order": "yes", "name": name} | ({"anew": "yes"} if head.get("anew") else {})
            if prior is not None:
                form["claimed"] = repr(prior)
            files = {"file": ("predictions.csv", self._file(canonical))}
            try:
                found = self._connection.post("submissions", repeatable=True, files=files, data=form)
            except Halted as halt:
                halt.answers = answers
                raise
            if found["value"] is None:
                raise HoldoutError(
                    "the competition is blind: the submission is scored, and its score is hidden"
                )
            answers.append(found | _more(found))
        return answers

    def _file(self, canonical: NDArray[Any]) -> bytes:
        values = self._expected.decoded(canonical)
        # the array holds only the second class's probability
        if values.ndim < len(self._expected.columns) == 2:
            values = np.stack([1.0 - values, values], axis=1)
        rows = values.reshape(
            len(values), -1
        ).tolist()  # Python writes floats in such a way that reading them loses nothing
        return table_of_csv([self._expected.columns, *rows])


def _more(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer that a reply about a submission lacks. The cost in nats is only in the history."""
    word = found["told"].partition(" ")[0]
    outcome = {"cell": "corrected", "span": "corrected", "measured": "measured"}.get(word, found["told"])
    return {
        "outcome": outcome,
        "measured": found["value"] if outcome in {"corrected", "measured"} else None,
        "way": "claim",
        "nats": math.nan,
        "another_budget": False,
    }
