"""One score that is compared with a prior, or claimed on a board."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.claiming import Claimed
from reusable_holdout.guard.kinds import Claims
from reusable_holdout.guard.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from reusable_holdout.guard.answer import Answer
    from reusable_holdout.guard.kinds import Check, HaltReason
    from reusable_holdout.guard.rows import Query

__all__ = ["OnBoard"]


class OnBoard(Asking):
    """One question at a time; and the boards of claims that many series ask on."""

    @sealed
    def pairs(self, beta: float) -> Pairs:
        """Say which of two claims that were answered is better for certain; nothing is asked, nothing is charged.

        Parameters
        ----------
        beta : float
            Failure probability of all pairs together, beside the guard's own: with a `confidence` of .955 and .005 here
            all intervals and all pairs hold together with probability .95.

        Raises
        ------
        InputError
            If the policy is another, the metric no plain mean over all rows, or beta no probability.
        """
        kind, bound = self._ways.policy, self._holdout.bound
        plain = bound.by_rows and bound.groups is None and bound.counted_rows == bound.rows
        if not isinstance(kind, Claims) or not plain or bound.relative_weights is not None:
            raise InputError(
                'pairs are for policy="claims" and means over rows that all count the same; got '
                f"{self.policy} of {self.metric.name}; compare intervals instead"
            )
        return Pairs(kind.certificate, beta, partial(self._transcript.reached, kind))

    def _compared(
        self,
        kind: Check,
        query: Query,
        prior: float,
        measure: Callable[[], NDArray[np.int64] | None],
        *,
        anew: bool = False,
    ) -> Answer:
        """Ask about one score, which is measured if it comes to that: compare it with a prior, or put it on a board."""
        if isinstance(kind, Claims):
            own = self._content.claim(query.digest, query.series, kind.grid_unit(prior))
            claimed = Claimed(query, own, anew)
            needed = self._transcript.claim_needs_rows(kind, claimed)
            return self._told(self._transcript.claim(kind, measure() if needed else None, prior, claimed))
        if anew:
            raise InputError(
                "anew= is for a board of claims, where the same predictions are one question, whoever claims what of "
                "them; leave it out; nothing was asked"
            )
        tolerances = None if query.tolerance is None else np.array([query.tolerance])
        refuse = partial(kind.check_room, np.array([prior]), tolerances)
        decide = partial(kind.answer, prior, query.tolerance, query.digest)
        return self._told(self._answer(kind, query, refuse, measure, decide))

    def _claim_each(
        self,
        kind: Claims,
        prepared: NDArray[Any],
        priors: NDArray[np.float64],
        queries: Sequence[Query],
    ) -> list[Answer]:
        """Ask one after the other, for what is told of one decides what the next can cost."""
        answers: list[Answer] = []
        for one, prior, query in zip(prepared, priors.tolist(), queries, strict=True):
            try:
                measure = partial(self._measured, kind, one[None], prior)
                answers.append(self._compared(kind, query, prior, measure))
            except Halted as halt:
                raise self._transcript.halt(cast("HaltReason", halt.reason), answers) from None
        return answers
