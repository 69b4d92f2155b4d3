"""The guard of one epoch of a competition. Only this module calls the library's guard."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from numpy.typing import NDArray

from reusable_holdout import Answer, Metric, Plan, Rows
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import RolledBackError
from reusable_holdout.guard import ReusableHoldout
from reusable_holdout.guard.boards import Pairs
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger import genesis
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.plan import round_up
from reusable_holdout.witness import Head
from reusable_holdout_leaderboard.rules import Rules
from reusable_holdout_leaderboard.store.records import StoreError

__all__ = ["Guard", "Place", "check_agreement", "compares", "epoch_of", "honest_error"]

_CLAIMED_ERROR = 0.005  # share of the metric's range: about the error of a score on ten thousand rows
_SHARE = 0.05  # share of the failure probability for comparisons of neighbours on the board; intervals have the rest
_NUMBERED = re.compile(r".+ #(\d{1,18})", re.DOTALL)


class Place(NamedTuple):
    """The locations of a competition's private files.

    Attributes
    ----------
    folder : Path
        Folder that belongs to this competition alone.
    ledger : str
        SQLite file of the ledger, or URL of its database.
    key_file : Path
    witness : str or None
        Witness of the ledger. None stands for the witness that the ledger names, if it names one.
    """

    folder: Path
    ledger: str
    key_file: Path
    witness: str | None = None

    def __repr__(self) -> str:
        return f"<Place: {self.folder}>"  # the URL may hold a password

    def labels(self, epoch: int) -> Path:
        """Return the path of the file with an epoch's labels."""
        return self.folder / f"labels-{epoch}.parquet"

    @property
    def fresh_labels(self) -> Path:
        """Path of the file with the labels for the final standings."""
        return self.folder / "fresh-labels.parquet"

    @property
    def public(self) -> Path:
        """Folder with the files that everyone may download."""
        return self.folder / "public"


class Guard:
    """The guard of one epoch, which is asked about the claims of teams. Its ledger is open for reading, too.

    Parameters
    ----------
    guard : ReusableHoldout
    place : Place
    rules : Rules
    """

    def __init__(self, guard: ReusableHoldout, place: Place, rules: Rules) -> None:
        self._guard, self._place, self._rules = guard, place, rules
        self._ledger = SqlLedger(place.ledger, must_exist=True)
        beta = guard.plan.confidence - rules.confidence
        self.pairs: Pairs | None = guard.pairs(beta) if compares(rules) and beta > 1e-9 else None

    @classmethod
    def make(cls, place: Place, rules: Rules, labels: NDArray[Any]) -> Self:
        """Make the guard of the first epoch, or resume the one that has the same labels and rules.

        Raises
        ------
        InputError, PlanError, LedgerError
            As :class:`reusable_holdout.ReusableHoldout`.
        """
        share = _SHARE * (1.0 - rules.confidence) if compares(rules) else 0.0
        plan = Plan(
            board="claims",
            queries=rules.queries,
            charges=rules.charges,
            estimate=rules.estimate,
            prior_error=honest_error(rules, len(labels)),
            confidence=rules.confidence + share,
            choices=(),
        )
        unwitnessed = not place.witness  # without a witness, nobody notices an older copy of the folder
        made = ReusableHoldout(
            Rows(None, labels, classes=rules.classes),
            None,
            metric=rules.made_metric(),
            plan=plan,
            ledger=place.ledger,
            witness=place.witness,
            key=place.key_file,
            allow=_allowed(rules) | ({"no witness"} if unwitnessed else set()),
        )
        return cls(made, place, rules)

    @classmethod
    def open(cls, place: Place, rules: Rules, labels: NDArray[Any]) -> Self:
        """Open the guard of the ledger's current epoch.

        Raises
        ------
        LedgerError, LedgerKeyError
            If ledger, key or labels are missing or do not belong together.
        """
        opened = ReusableHoldout.open(
            place.ledger,
            Rows(None, labels, classes=rules.classes),
            metric=rules.made_metric(),
            key=place.key_file,
            witness=place.witness,
        )
        return cls(opened, place, rules)

    def rotate(self, labels: NDArray[Any], *, queries: int | None, early: bool) -> Self:
        """Begin the next epoch, and return its guard. This guard answers no new question from then on.

        Raises
        ------
        InputError, PlanError
            If this guard has not halted and `early` is false, or if the labels do not fit. Nothing was changed.
        """
        rotation = self._guard.rotate(
            Rows(None, labels, classes=self._rules.classes),
            queries=queries,
            charges=self._guard.plan.charges,  # without charges=, the tolerance of the earlier rows would be kept
            allow=_allowed(self._rules),
            early=early,
        )
        return type(self)(rotation.guard, self._place, self._rules)

    def close(self) -> None:
        """Close the guard and the ledger."""
        self._guard.close()
        self._ledger.close()

    # ---- ask

    def ask(self, predictions: NDArray[Any], *, claimed: float, series: str, name: str, anew: bool) -> Answer:
        """Ask the guard about the score that a team claims for its predictions.

        Raises
        ------
        Halted
            If no query is left.
        InputError
            If the predictions do not fit.
        RotatedError
            If the ledger has moved to another epoch.
        """
        answer: Answer = self._guard.evaluate(predictions, prior=claimed, series=series, name=name, anew=anew)
        return answer

    # ---- read

    @property
    def epoch(self) -> int:
        """Number of the guard's epoch, from 1."""
        return self._guard.epoch

    @property
    def metric(self) -> Metric:
        """Metric by which the board ranks teams."""
        return self._guard.metric

    @property
    def plan(self) -> Plan:
        """Plan of the guard: its declared queries, charges and confidence."""
        return self._guard.plan

    @property
    def answered(self) -> int:
        """Number of the last answer in this epoch."""
        return self._guard.answered

    @property
    def queries_asked(self) -> int:
        """Number of declared queries that answers have used."""
        return self._guard.queries_asked

    @property
    def halt_reason(self) -> str | None:
        """Reason why the guard answers no new question, or None if it still answers them."""
        return self._guard.halt_reason

    @property
    def witness(self) -> str:
        """File or repository of the ledger's witness. Empty if the ledger has no witness."""
        return self._place.witness or Configuration.parse(self._ledger.configuration() or "").witness

    def charges_left(self, series: str) -> int:
        """Return the number of charges that a team has left. The team is named by its series."""
        return self._guard.charges_left_of(series)

    def history(self, epoch: int | None = None) -> pd.DataFrame:
        """Return all answers that the guard has released in an epoch, in order."""
        return self._guard.history() if epoch is None else self._guard.history(epoch=epoch)

    def head(self) -> Head:
        """Return the ledger's head: its epoch, and the number and seal of its last answer."""
        return _head(self._ledger)


def _allowed(rules: Rules) -> set[str]:
    return {"vacuous"} if rules.vacuous else set()


def compares(rules: Rules) -> bool:
    """Return True if neighbours on the board are compared row by row.

    This is done if the metric is a mean over rows that are right or wrong, such as accuracy.
    """
    metric = rules.made_metric()
    return metric.family == "binomial" and metric.response == "labels"


def honest_error(rules: Rules, rows: int) -> float:
    """Return the expected error of an honest claim, in the metric's unit."""
    if rules.prior_error is not None:
        return rules.prior_error
    metric = rules.made_metric()
    return round_up(max(_CLAIMED_ERROR, 0.5 / math.sqrt(rows)), 2) * (metric.upper - metric.lower)


# ---- the board and the ledger are checked against each other


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[SqlLedger]:
    ledger = SqlLedger(place.ledger, must_exist=True)
    try:
        yield ledger
    finally:
        ledger.close()


def _head(ledger: SqlLedger) -> Head:
    tail = ledger.tail()
    return Head(ledger.epoch, tail.query, tail.seal)


def epoch_of(place: Place) -> int:
    """Return the number of the ledger's current epoch."""
    with _opened(place) as ledger:
        return ledger.epoch


def check_agreement(place: Place, seen: Head | None, numbers_given: Callable[[], int]) -> None:
    """Refuse a ledger that is older than its board, and a board that is older than its ledger.

    After each recorded answer, the board stores the ledger's head (the number and seal of the last answer). The ledger
    may have more answers than that. But they must answer submissions that the board knows, because the board reserves
    each submission before the guard is asked.

    Parameters
    ----------
    place : Place
    seen : Head or None
        Head that the board has stored.
    numbers_given : callable
        Returns the highest number that the board has ever given to a submission. It is called after the ledger is read.

    Raises
    ------
    RolledBackError
        If the ledger is an older copy or another ledger. Its budget would be spent twice.
    StoreError
        If the board is an older copy, which lacks submissions that were answered.
    """
    with _opened(place) as ledger:
        if seen is not None and not _contains(ledger, seen):
            here = _head(ledger)
            raise RolledBackError(
                f"a ledger must contain the answers that its board has seen, up to number {seen.query} of round "
                f"{seen.epoch}; {ledger.place} ends at number {here.query} of round {here.epoch}, "
                "or has other answers: an older copy was restored; nothing is answered; put the newest copy back, or "
                "hold another competition on fresh labels: a budget is never refilled"
            )
        answered = max(_numbers_after(seen, ledger), default=0)
    given = numbers_given()
    if answered > given:
        raise StoreError(
            "a board must know every submission that its ledger has answered; the ledger is at number "
            f"{answered}, the board at {given}: an older board was restored; nothing is answered; put the newest copy "
            "back, or restore board and ledger from one backup: 'reusable-holdout board restore'"
        )


def _contains(ledger: SqlLedger, seen: Head) -> bool:
    configurations = ledger.configurations()
    if not 1 <= seen.epoch <= len(configurations):
        return False
    if seen.query == 0:
        return genesis(configurations[seen.epoch - 1]) == seen.seal
    return dict(ledger.seals(epoch=seen.epoch)).get(seen.query) == seen.seal


def _numbers_after(seen: Head | None, ledger: SqlLedger) -> Iterator[int]:
    """Yield the numbers of the submissions that the ledger has answered after the head `seen`, or of all if it is None.

    Questions that no submission asked are skipped: their names do not end in a submission's number.
    """
    first = 1 if seen is None else seen.epoch
    for epoch in range(first, ledger.epoch + 1):
        after = seen.query if seen is not None and epoch == seen.epoch else 0
        for row in ledger.rows(after, epoch=epoch):
            numbered = _NUMBERED.fullmatch(row.name)
            if numbered is not None:
                yield int(numbered[1])
