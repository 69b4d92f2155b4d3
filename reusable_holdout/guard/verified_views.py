"""Which way each row of a ledger was asked, and whether the views it opened are those that the budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from reusable_holdout.errors import HoldoutError
from reusable_holdout.guard.views import VIEW, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reusable_holdout.guard.kinds import Kind, State, Ways
    from reusable_holdout.ledger import Row

__all__ = ["Views"]

_SAME = 1e-9  # nats, recomputed on another machine


class Views:
    """Views of one epoch, as its rows open them.

    Parameters
    ----------
    first : View
        The guard's own metric.
    """

    def __init__(self, first: View) -> None:
        self._views = [first]
        self._ways: list[Ways | None] = [first.ways()]

    def opened(self, rows: Sequence[Row], states: Sequence[State]) -> Iterator[str]:
        """Say what is wrong with the views, and which rows were asked in a way that no view has.

        Parameters
        ----------
        rows : sequence of Row
        states : sequence of State
            Before each.
        """
        for row, state in zip(rows, states, strict=True):
            if row.kind == VIEW:
                yield from (f"query {row.query}: {problem}" for problem in self._problems(row, state))
            elif self._named(row.view, row.kind) is None:
                yield f"query {row.query}: it was asked in a way that this guard does not have"

    def kind(self, row: Row) -> Kind | None:
        """Way in which a row was asked; None if it opens a view."""
        return None if row.kind == VIEW else self._named(row.view, row.kind)

    def places(self, rows: Sequence[Row]) -> Iterator[tuple[Kind, list[int]]]:
        """Every way that was asked in, with the places of its rows."""
        found: dict[tuple[int, str], list[int]] = {}
        for place, row in enumerate(rows):
            if row.kind != VIEW:
                found.setdefault((row.view, row.kind), []).append(place)
        for (view, name), places in found.items():
            yield cast("Kind", self._named(view, name)), places

    def _named(self, view: int, name: str) -> Kind | None:
        ways = self._ways[view] if 0 <= view < len(self._ways) else None
        return None if ways is None else ways.named(name)

    def _problems(self, row: Row, state: State) -> Iterator[str]:
        number, first = len(self._ways), self._views[0]
        try:
            view = View.parse(row.told)
            ways = view.ways()
        except HoldoutError as error:
            yield str(error)
            return
        self._ways.append(ways)
        self._views.append(view)
        budget = first.kept.budget_of_view(number)
        if (view.number, row.view, row.value, row.told) != (number, 0, number, view.text()):
            yield f"the view that it opens must be number {number}"
        if view.plan is None and not view.tells:
            yield "a view without a plan must have told class counts"
        elif view.plan is not None and (
            view.plan["shared"] != budget.record() or not view.consistent or not view.kept.keep_to(first.kept)
        ):
            yield "the view that it opens is not on the budget of the guard"
        if row.charged or row.asked != state.asked or abs(row.nats - view.nats) > _SAME:
            yield "a view takes no charge and no query, and costs what was told for it"
        known = view.counts is not None and view.counts.place is not None and not view.tells
        if known and not any(
            (one.number, one.counts) == (view.told_by, view.counts) and one.knows_of(view.metric)
            for one in self._views[:-1]
        ):
            yield f"what it knows of the {view.tells_of} was not told before"
        if (row.prior, row.threshold, row.low, row.high, row.batch) != (0.0, 0.0, 0.0, 0.0, row.query):
            yield "a view has no value and no interval"
        own = cast("Ways", self._ways[0])
        if own.final.halt_reason(state) is not None:
            yield "it was opened after a final"
        reveal = own.reveal
        room = reveal.certificate.room(charges=state.charges, nats=state.nats) + _SAME
        if (
            view.tells
            and own.policy.halt_reason(state) is None
            and room < reveal.certificate.theory.counts.worst
        ):
            yield f"what it told of the {view.tells_of} could have broken a promise of the plan"
