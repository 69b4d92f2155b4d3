"""Ask a board of claims, and who has how much left on it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard.asking import Asking
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.claiming import Claimed
from reusable_holdout.guard.kinds import Claims
from reusable_holdout.guard.kinds.stated import Statement
from reusable_holdout.guard.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from reusable_holdout.guard.answer import Answer
    from reusable_holdout.guard.kinds import HaltReason
    from reusable_holdout.guard.rows import Query

__all__ = ["OnBoard"]


class OnBoard(Asking):
    """Claims of many series."""

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

    def _claim(
        self,
        kind: Claims,
        predicted: Callable[[], NDArray[Any] | None],
        asked: Statement,
        query: Query,
        *,
        anew: bool,
    ) -> Answer:
        """Ask about what is predicted, if it comes to that."""
        claimed = self._claimed(kind, query, asked, anew=anew)
        needed = self._transcript.claim_needs_rows(kind, claimed)
        score = self._measured(kind, predicted(), asked) if needed else None
        return self._told(self._transcript.claim(kind, score, asked.prior, claimed))

    def _claimed(self, kind: Claims, query: Query, asked: Statement, *, anew: bool = False) -> Claimed:
        own = self._content.claim(query.digest, query.series, kind.grid_unit(asked.prior))
        return Claimed(query, own, anew)

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
            asked = Statement(prior, None, 0)
            try:
                answers.append(self._claim(kind, one[None].copy, asked, query, anew=False))
            except Halted as halt:
                raise self._transcript.halt(cast("HaltReason", halt.reason), answers) from None
        return answers

    def _refuse_anew(self) -> None:
        raise InputError(
            "anew= is for a board of claims, where the same predictions are one question, whoever claims what of them; "
            "leave it out; nothing was asked"
        )
