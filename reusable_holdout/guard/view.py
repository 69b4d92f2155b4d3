"""One metric or slice of the rows, with all parts of a guard that are private to the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from reusable_holdout.answer import Answer
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boards import Boards
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.inputs import PrivateData
from reusable_holdout.guard.known_rows import TrainedOn
from reusable_holdout.guard.transcript import Transcript
from reusable_holdout.guard.views import View
from reusable_holdout.ledger import Ledger
from reusable_holdout.metrics import Metric
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.plan import Plan
from reusable_holdout.rows import Rows
from reusable_holdout.slips import warn
from reusable_holdout.ways import State, Way
from reusable_holdout.ways.table import Ways

Listener = Callable[[Sequence[Answer]], None]


class GuardedView:
    """The private side of a guard: one view of its rows on the one ledger.

    Parameters
    ----------
    holdout : PrivateData
    facts : View
        Public facts, as the ledger keeps them.
    plan : Plan
    ledger : Ledger
    key : tuple of bytes and Path or None
        Noise key of the guard, and its file.
    root : GuardedView, optional
        The view that the guard was made with; itself by default.
    base : GuardedView, optional
        The view of all rows, of which this one is another metric or a slice; itself by default.
    added : tuple of Rows
        Rows that were added to the root's.
    alone : GuardedView, optional
        The view of the added rows alone, on which a final rests, too.
    fresh : PrivateData, optional
        All rows that were added.
    since : State, optional
        For such a view: the state when the first of its rows were added.
    digest : str, optional
        Keyed digest of the rows, hex; of the root by default.
    """

    def __init__(
        self,
        holdout: PrivateData,
        facts: View,
        plan: Plan,
        ledger: Ledger,
        key: tuple[bytes, Path | None],
        *,
        root: GuardedView | None = None,
        base: GuardedView | None = None,
        added: tuple[Rows, ...] = (),
        alone: GuardedView | None = None,
        fresh: PrivateData | None = None,
        since: State | None = None,
        another_budget: bool = False,
        overlap_allowed: bool = False,
        digest: str = "",
    ) -> None:
        self.holdout, self.facts, self.plan, self.ledger, self.key = holdout, facts, plan, ledger, key
        self.number, self.root, self.base, self.added = facts.number, root or self, base or self, added
        self.alone, self.fresh = alone, fresh
        self.trained_on: TrainedOn
        self.unit, self.unit_of_pairs = (Unit.of(self.metric, paired=paired) for paired in (False, True))
        self.digest: str = digest if root is None else root.digest
        secret = facts.secret(key[0])
        self.content = ContentKey(secret)
        holdout.bound.statistic.shuffle(self.content.question("order", b"", 0))  # the digest of no question
        self.ways = Ways(plan, KeyedNoise(secret, epoch=ledger.epoch - 1), since)
        self.listeners: list[Listener] = []
        if root is None:
            self.transcript = Transcript(ledger, facts.plan, another_budget=another_budget)
            self.boards = Boards(self.transcript)
        else:
            self.transcript, self.boards = root.transcript, root.boards
        if base is None:
            allowed = overlap_allowed if root is None else root.trained_on.allowed
            self.trained_on = TrainedOn(holdout, allowed=allowed)
        else:
            self.trained_on = base.trained_on

    def __repr__(self) -> str:
        return f"<GuardedView: {self.metric.name}>"

    @cached_property
    def prior_error(self) -> float:
        """Standard deviation that the plan assumes for the error of an honest prior, in [0, 1]."""
        return self.plan.prior_error / self.plan.span

    @cached_property
    def row_error(self) -> float:
        """Standard error of a score on one row, in [0, 1]; that of n rows is smaller by the factor ``sqrt(n)``."""
        return self.plan.open_wish.standard_error(self.plan.rows) * math.sqrt(self.plan.rows)

    @property
    def metric(self) -> Metric:
        """The metric that is asked about."""
        return cast("Metric", self.holdout.bound.metric)

    def charges_left(self, charges: int, series: str = "") -> int:
        """Return the charges left after `charges` were spent; on a board, the charges that a series has left."""
        if self.plan.asks == "claims":
            return self.boards.charges_left(self.ways.claim, series)
        return self.transcript.allowance.left(charges)

    def way_of(self, name: str, *, paired: bool, guarded: bool) -> Way:
        """Return the way in which a question is asked; InputError if the plan does not have this way."""
        asks = self.plan.asks
        gates = {(False, False): "gate", (True, False): "gate-compare", (False, True): "guarded-gate"}
        ledger_name = {
            "evaluate": "claim" if asks == "claims" else "compare" if paired else "check",
            "gate": gates.get((paired, guarded), "guarded-compare"),
        }.get(name, name)
        way = self.ways.named(ledger_name)
        if way is None or (paired and name not in {"evaluate", "gate"}) or (paired and asks == "claims"):
            if name == "final" and not self.plan.final_share:
                raise InputError(
                    "a final needs a share of the failure probability; this plan keeps none; nothing was asked; make "
                    "the guard with one: Plan(..., final_share=0.25)"
                )
            raise InputError(
                f"{name} of {'a difference' if paired else 'one subject'} must be a question that the plan allows; "
                f"this one allows {'one final' if self.plan.final_share == 1.0 else _ASKS[asks]}; nothing was asked"
            )
        if guarded and name != "gate":
            raise InputError(f"guardrails belong to a gate; got {name}; nothing was asked; ask with gate()")
        return way

    def check_differences(self) -> None:
        """Refuse to compare two models if the metric is not a plain mean over rows."""
        if not self.holdout.bound.by_rows:
            raise InputError(
                f"two models are compared row by row, so the metric must be a plain mean over rows; {self.metric.name} "
                "is not; nothing was asked; guard the rows with accuracy, a loss, or a mean of your own"
            )

    def checked_view(self, guard: Any) -> GuardedView:
        """Return the view of another guard of the same rows; InputError if `guard` is something else."""
        view = getattr(guard, "_view", guard)
        if not isinstance(view, GuardedView) or view.transcript is not self.transcript:
            raise InputError(
                "a view must be another metric of the same rows, from on() of the same guard; got "
                f"{type(guard).__name__}; nothing was asked"
            )
        return view

    def about(self, way: Way, content: bytes) -> bytes:
        """Return a text that ties a concealed measurement to its rows, metric and way, as these may share one key."""
        return f"{self.ledger.epoch} {self.facts.text()} {way.name} ".encode() + content

    def tell(self, answers: Sequence[Any]) -> None:
        """Pass new answers to the listeners; their errors become warnings, because the answers are already released."""
        new = [answer for answer in answers if isinstance(answer, Answer) and not answer.replayed]
        for listener in list(self.listeners) if new else []:
            try:
                listener(new)
            except Exception as error:
                warn(
                    f"a listener of the guard raised {type(error).__name__}: {error}; the answer is in history()",
                    RuntimeWarning,
                )


_ASKS = {"all": "all ways to ask", "gates": "gates alone", "claims": "a board of claims"}
