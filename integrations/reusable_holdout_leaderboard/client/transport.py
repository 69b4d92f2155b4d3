"""The transport to a leaderboard: messages of a remote guard, as requests over HTTP."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from reusable_holdout.guard.kinds.table import POLICIES

from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError
from reusable_holdout_leaderboard.client.connection import Connection, raised_by
from reusable_holdout_leaderboard.files.forms import Expected
from reusable_holdout_leaderboard.rules import Rules

__all__ = ["BoardTransport"]

_PAGE = 10_000
_MOST_TOGETHER = 200
_MOST_NUMBERS = 400_000  # of one request: some megabytes of JSON
_UNASKED = {
    "compare": "compares two models",
    "reveal": "reveals a value",
    "choose": "chooses among candidates",
    "final": "gives a final",
}


class BoardTransport:
    """A team's way to a leaderboard; :class:`reusable_holdout_box.RemoteHoldout` finds it by the address.

    A leaderboard answers evaluations alone, and knows a question by its predictions: with another prior they get the
    answer they got before. The budget is that of all teams. After a rotation make a new RemoteHoldout: the rows are
    others.

    Parameters
    ----------
    url : str
        Address of the server, or of one of its competitions: ``http://host:8000`` or ``http://host:8000/c/name``.
    token : str
        Token of the team.
    patience_seconds : float
        How long to try again while the server cannot be reached, is busy or asks to wait.
    """

    def __init__(self, url: str, token: str = "", patience_seconds: float = 60.0) -> None:
        self._connection = Connection(url, token, patience_seconds=patience_seconds)
        self._rules: Rules
        self._expected: Expected
        self._team_id = 0

    def __repr__(self) -> str:
        return f"<BoardTransport: {self._connection.url}>"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, head: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Mapping[str, Any]:
        """Send a message, and return the reply; as :meth:`reusable_holdout_box.Transport.ask`.

        Raises
        ------
        Halted, HoldoutError
            If a budget has run out, or the server refuses, or the competition is blind: then predictions count, and no
            score is told.
        """
        asked = head["ask"]
        if asked in _UNASKED:
            raise InputError(
                f"a guard that lies with the labels {_UNASKED[asked]}, a board does not: what one team is told would "
                "widen the intervals of all; nothing was asked; ask with evaluate_predictions or evaluate_many"
            )
        if asked == "about":
            return self._about()
        if asked == "status":
            return self._status()
        if asked == "history":
            rows = self._connection.get("history", after=head["after"], limit=_PAGE)
            return {"rows": rows, "page": _PAGE}
        if asked == "ids":
            text = self._connection.get("sample", after=head["after"])
            return {"ids": [line[0] for line in [*csv.reader(io.StringIO(text, newline=""))][1:]]}
        if self._rules.policy == "ladder" and not head.keys().isdisjoint({"prior", "priors"}):
            raise InputError("a ladder compares with the team's best so far by itself; leave prior out")
        forms = [self._expected.decoded(one) for one in arrays]
        return {"answers": self._evaluated(head, forms) if asked == "evaluate" else self._many(head, forms)}

    # ---- inside

    def _about(self) -> dict[str, Any]:
        me, about = self._connection.get("me"), self._connection.get("competition")
        self._rules, form, self._team_id = Rules.from_dict(about["rules"]), about["submission"], int(me["id"])
        metric = self._rules.made_metric()
        self._expected = Expected(
            ids=None,
            rows=form["rows"],
            id_column=form["id_column"],
            columns=tuple(form["prediction_columns"]),
            response=metric.response,
            classes=self._rules.classes,
            max_bytes=form["max_bytes"],
        )
        return {
            "metric": metric.describe(),
            "policy": self._rules.policy,
            "plan": about["plan"],
            "classes": self._rules.classes,
            "private_labels": None,
            "rows": form["rows"],
            "ids": None if self._rules.id_column is None else form["rows"],
            "digest": None,
            "allow": ["evaluate"],
            "verdict_only": False,
            "most_bytes": math.inf,  # a batch is sliced here
            "team": me["name"],
            "competition": self._rules.slug,
        }

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._connection.get("status")
        return status

    def _evaluated(self, head: Mapping[str, Any], forms: Sequence[NDArray[Any]]) -> list[dict[str, Any]]:
        if head.get("tolerance") is not None:
            raise InputError(
                "a leaderboard takes no tolerance of a question; leave it out; nothing was asked"
            )
        body = {"predictions": forms[0].tolist(), "prior": head.get("prior"), "name": head.get("name", "")}
        if head.get("anew"):
            if self._rules.policy != "claims":
                raise InputError(
                    f"asking anew is for boards of claims; this one's policy is {self._rules.policy}; nothing was "
                    "asked; leave anew out"
                )
            body["anew"] = True  # left out otherwise, for older servers do not know it
        return self._answers(self._connection.post("evaluate", repeatable=True, json=body))

    def _many(self, head: Mapping[str, Any], forms: Sequence[NDArray[Any]]) -> list[dict[str, Any]]:
        self._check_left(forms)
        answers: list[dict[str, Any]] = []
        for part in _parts(len(forms), self._expected.rows * max(1, len(self._expected.columns))):
            body: dict[str, Any] = {"batch": [one.tolist() for one in forms[part]]}
            body |= {name: head[name][part] for name in ("names", "priors") if name in head}
            reply = self._connection.post("evaluate", repeatable=True, json=body)
            answers += self._answers(reply)
            stopped = reply["stopped"]
            if stopped is not None:
                error = raised_by(stopped)
                if isinstance(error, Halted):
                    error.answers = answers
                raise error
        return answers

    def _answers(self, reply: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the answers with all fields; what a charged one cost is in the history alone."""
        found = reply["submissions"]
        if any(one["value"] is None for one in found):
            raise HoldoutError("the competition is blind: the predictions count, and no score is told yet")
        common = {"charges_left": reply["charges_left"], "kind": POLICIES[self._rules.policy].name}
        unknown = self._rules.policy == "claims"
        return [
            {**one, **common, "nats": math.nan if one["charged"] or unknown else 0.0, "another_budget": False}
            for one in found
        ]

    def _check_left(self, forms: Sequence[NDArray[Any]]) -> None:
        """Refuse a batch of which some cannot be answered, even if others were answered before."""
        asked = len({self._expected.digest(one) for one in forms})
        status = self._status()
        left = int(status["queries_left"])
        if status["halted"] or asked <= left:
            return
        rows = self._connection.get("board", team=self._team_id)  # older servers send those of all teams
        own = next((row for row in rows if row["team_id"] == self._team_id), None)
        if asked - (0 if own is None else int(own["submissions"])) > left:
            raise BudgetError(
                f"{asked} queries asked, {left} left; nothing was asked and nothing was charged"
            )


def _parts(count: int, numbers: int) -> Iterator[slice]:
    """Yield slices of a batch of so many, each with so many numbers; each slice is one request."""
    together = max(1, min(_MOST_TOGETHER, _MOST_NUMBERS // numbers))
    for start in range(0, count, together):
        yield slice(start, start + together)
