"""The facts that a report shows for each epoch of a ledger."""

from __future__ import annotations

from collections.abc import Sequence

from reusable_holdout.earlier import Earlier, Promise
from reusable_holdout.errors import printable
from reusable_holdout.guard.configuration import Configuration, facts_of, read_epochs
from reusable_holdout.guard.releases import history_of
from reusable_holdout.guard.verification import Verification
from reusable_holdout.guard.views import VIEW
from reusable_holdout.ledger import Row
from reusable_holdout.plan import Plan
from reusable_holdout.scales import decimals_of
from reusable_holdout.ways import State
from reusable_holdout.ways.table import Ways


class Findings:
    """One epoch, as its facts and its rows tell it.

    Attributes
    ----------
    number : int
    plan : Plan or Promise
    metrics : list of str
        Name of the metric of each view, in order.
    units : str
        The unit that the plan counts: "rows" or "groups".
    state : State
        The released outcomes and the charges.
    room : float
        Nats that can still be released on request before a promise of the plan would break.
    halted : str
        "charges", "queries" or "final"; empty while it answers.
    history : pandas.DataFrame
        The history, as :meth:`ReusableHoldout.history`, with the further columns `failed` and `decimals`.
    another_budget : bool
    """

    def __init__(self, number: int, facts: Configuration | Earlier, rows: Sequence[Row]) -> None:
        self.number, self.another_budget = number, facts.another_budget
        self.state = state = State.after(rows[-1]) if rows else State()
        self.plan: Plan | Promise
        if isinstance(facts, Earlier):
            self.plan, room, self.halted = facts.promise, facts.room(state), facts.halted(state)
        else:
            self.plan = Plan.kept(facts.plan)
            ways = Ways(self.plan)
            room = ways.reveal.certificate.room(charges=state.charges, nats=state.nats)
            self.halted = ways.main.halt_reason(state) or ""
        self.room = max(0.0, room)
        names = (facts.metric["name"], *(row.name for row in rows if row.kind == VIEW))
        self.metrics = [printable(name) for name in names]
        self.units = "groups" if "groups" in facts.metric else "rows"
        spans = [view.metric["upper"] - view.metric["lower"] for view in facts.views(rows)]
        self.history = history_of(facts, rows)
        self.history["failed"] = self.history["outcome"] == "failed"
        self.history["decimals"] = [decimals_of(spans[row.view]) for row in rows]


def findings_of(ledger: str, verified: Verification) -> list[Findings]:
    """Return the findings of every epoch of a sound ledger, up to the last verified answer."""
    found, rest = [], verified.queries
    for number, epoch in enumerate(read_epochs(ledger, None)[0], start=1):
        rows = epoch.rows[:rest]  # more may have been asked meanwhile
        rest -= len(rows)
        found.append(Findings(number, facts_of(epoch.text), rows))
    return found
