"""The exception of a guard that has halted: the budget that ran out, its past use, and the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from functools import partial

from reusable_holdout.answer import Answer
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import Halted
from reusable_holdout.guard.releases import released_by
from reusable_holdout.ledger import Ledger
from reusable_holdout.ways import State

_WHY = {
    "queries": "all {queries} declared queries are asked",
    "final": "a final was given, and ends what can be asked of these rows",
}
_SHOWN = 20  # of the queries that were charged


def halted(
    ledger: Ledger, state: State, queries: int, reason: str, answers: Sequence[Answer | None]
) -> Halted:
    """Build the exception; the history of a ledger on a disk or a server is read only when it is first used."""
    history = partial(_released_until, ledger, ledger.epoch, state.query)
    unanswered = f"{len(answers)} of the batch were answered" if answers else "this question was not answered"
    todo = (
        "Guard fresh rows to go on (Plan says how many, rotate keeps the ledger)."
        if reason == "final"
        else "guard.final(model) still certifies the end of the project, once; to go on, guard fresh rows (Plan "
        "says how many, rotate keeps the ledger)."
    )
    why = _why(ledger, state, queries, reason)
    return Halted(
        f"the guard has halted: {why}; {unanswered}. What was released stays "
        f"valid: see .history; questions already asked replay free. {todo}",
        reason=reason,
        history=history() if ledger.url is None else history,
        answers=answers,
    )


def _why(ledger: Ledger, state: State, queries: int, reason: str) -> str:
    """Say why it has halted, and on which queries charges were spent."""
    paid, count = ledger.charged(_SHOWN), state.charges
    numbers = ", ".join(map(str, paid)) + ", ..." * (count > _SHOWN)
    on = f"on {'query' if count == 1 else 'queries'} {numbers}"
    if reason == "charges":
        return f"{'the only charge is' if count == 1 else f'all {count} charges are'} spent ({on})"
    why = _WHY[reason].format(queries=queries)
    return f"{why} (charges were paid {on})" if paid else why


def _released_until(ledger: Ledger, epoch: int, query: int) -> pd.DataFrame:
    """Read the history of an epoch up to a query, even if the ledger has been closed."""
    with closing(ledger.latest()) if ledger.closed else nullcontext(ledger) as store:
        return released_by(store, epoch).history.head(query)
