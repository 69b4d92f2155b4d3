"""The verification of a ledger: anyone can recompute every interval, threshold and charge from it alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reusable_holdout.earlier import Earlier
from reusable_holdout.errors import HoldoutError, TamperedLedgerError
from reusable_holdout.guard import frozen
from reusable_holdout.guard.configuration import Configuration, Epoch, KeptRows, facts_of, read_epochs
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.guard.recomputation import States, Views, problems_of_ways
from reusable_holdout.ledger import Row, chain_problems
from reusable_holdout.slips import checked_call

_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Verification:
    """The result of verifying a ledger.

    Attributes
    ----------
    queries, charges : int
        Answers found, of all epochs, and how many of them were charged.
    head : str
        Seal of the last commit, hex. If it is kept elsewhere, a later verification can find that rows were cut off.
    problems : list of str
        One sentence for each thing that is wrong; empty for a sound ledger.
    another_budget : bool
        True if the rows already had another budget when a guard was made for them here: then the intervals of the two
        budgets are not jointly valid.
    witnessed : bool
        True if a witness was reached, and has seen no more than the ledger holds.
    mistake : str
        Known error in the certificate of a sound ledger, in words; empty if none is known.
    """

    queries: int
    charges: int
    head: str
    problems: list[str]
    another_budget: bool = False
    witnessed: bool = False
    mistake: str = ""

    def __str__(self) -> str:
        lines = self.problems or [f"sound: {self.queries} answers, {self.charges} charged"]
        if self.another_budget:
            lines = [*lines, "marked: its rows had another budget, and nothing is promised of both together"]
        if self.mistake:
            lines = [*lines, f"mistaken: {self.mistake}"]
        return "\n".join([*lines, f"head {self.head}{', as its witness has seen it' * self.witnessed}"])

    @property
    def sound(self) -> bool:
        """True if no problem was found."""
        return not self.problems

    def check(self) -> None:
        """Raise an error if problems were found.

        Raises
        ------
        TamperedLedgerError
            If the ledger is not sound.
        """
        if self.problems:
            raise TamperedLedgerError(self.problems)


@checked_call
def verify(
    ledger: str | Path,
    *,
    expected_head: str | None = None,
    witness: str | Path | None = None,
    certificate: FrozenCertificate | str | Path | None = None,
) -> Verification:
    """Recompute the hash chain, the budget, and every interval of a ledger, offline and without the holdout or its key.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.
    expected_head : str, optional
        The `head` of an earlier verification: a seal that must still be in the chain.
    witness : str or Path, optional
        Place of the witness; by default the one named in the ledger, if it can be reached.
    certificate : FrozenCertificate, str or Path, optional
        Certificate of a deployed model, or its file: its statements must be answers of this ledger.

    Returns
    -------
    Verification

    Raises
    ------
    LedgerError
        If there is no such ledger, or it cannot be read.
    InputError
        If `certificate` is not a certificate.

    Notes
    -----
    A sound result proves that the ledger is consistent with itself: the plan allows what was released, in this order.
    Only those who have the holdout and its key can check that the values came from the holdout.
    """
    deployed = None if certificate is None else frozen.FrozenCertificate.read(certificate)
    epochs, seen = read_epochs(ledger, witness)
    problems, chain = [], [""]
    for number, epoch in enumerate(epochs, start=1):
        where = "" if len(epochs) == 1 else f"epoch {number}: "
        found = list(_epoch_problems(epoch, number, chain[-1], epochs[: number - 1]))
        problems += [where + problem for problem in found]
        chain += epoch.chain()
    if expected_head is not None and expected_head not in chain[1:]:
        problems.append(
            "the expected head is not in the chain: rows were cut off or replaced since it was written down"
        )
    if deployed is not None:
        problems += frozen.frozen_problems(deployed, epochs)
    if seen is not None and seen.seal.hex() not in chain[1:]:
        problems.append(
            f"its witness has seen {seen.query} answers of epoch {seen.epoch} that are missing here or differ: an "
            "older copy was restored"
        )
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems = [*problems[:_MOST_PROBLEMS], f"and {more} more"]
    rows = [row for epoch in epochs for row in epoch.rows]
    charges = sum(row.charged == 1 for row in rows)
    another, mistake = False, ""
    for epoch in epochs:
        with contextlib.suppress(HoldoutError):
            configuration = facts_of(epoch.text)
            another = another or configuration.another_budget
            mistake = mistake or (configuration.mistake if isinstance(configuration, Earlier) else "")
    return Verification(len(rows), charges, chain[-1], problems, another, seen is not None, mistake)


def _epoch_problems(epoch: Epoch, number: int, previous: str, before: Sequence[Epoch]) -> Iterator[str]:
    problems = chain_problems(epoch.text, epoch.rows, epoch.seals)
    try:
        this, *past = [facts_of(one.text) for one in (epoch, *before)]
    except HoldoutError as error:
        yield from [*problems, str(error)]
        return
    underived = [
        f"{fact} does not follow from the rest of its configuration, which was changed"
        for fact in this.unfounded(epoch.text)
    ]
    yield from problems + underived
    if not problems and not underived:  # else columns or plan cannot be relied on
        yield from this.recomputed(epoch.rows) if isinstance(this, Earlier) else _recomputed(this, epoch.rows)
    if (this.epoch, this.previous) != (number, previous):
        yield "its configuration does not follow the epoch before: one was removed, or changed after its end"
    if KeptRows(this.known_rows, epoch.known_rows).parts() is None:
        yield "what it keeps of its rows is not what was sealed: a rotation cannot recognize them"
    replanned = True  # an epoch of the same holdout, right before and without answers, is no release
    for one, its in zip(reversed(past), reversed(before), strict=True):
        same = one.holdout == this.holdout
        replanned &= same and not its.rows
        if same and not replanned:
            yield f"its holdout is that of epoch {one.epoch}, which was released"
        if one.key != this.key:
            yield f"its noise key differs from that of epoch {one.epoch}"


def _recomputed(configuration: Configuration, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    try:
        states, views = States.before(rows), Views(configuration.view)
        problems = list(views.opened(rows, states.own))
        return problems or list(problems_of_ways(views.places(rows), rows, states))
    except (HoldoutError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [f"the rows cannot have come from the plan in the configuration: {error}"]
