"""An interaction of private algorithms with different epsilons and targets, in which each hit has a cost of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms.accounting.mixed_charging import mixed_charging_weight
from reusable_holdout.mechanisms.accounting.targets import not_prior_q
from reusable_holdout.mechanisms.targets.base import Interaction

Outcome = TypeVar("Outcome")


class MixedInteraction(Interaction):
    """An interaction that runs private algorithms in turn; the cost of a hit depends on its call's epsilon and q.

    All outcomes together are (epsilon, delta)-differentially private, however many algorithms are run and however
    adaptively they, their epsilons and their targets are chosen. If all calls have the same
    epsilon and q, `TargetInteraction` can pay for more hits.

    Parameters
    ----------
    epsilon, delta, calls_delta
        As for `TargetInteraction`.
    largest_epsilon : float
        No call may have a larger epsilon; finite, > 0.
    smallest_q : float, optional
        No call may have a smaller q; by default that of a NotPrior target at `largest_epsilon`.

    Raises
    ------
    InputError
        If a parameter is out of range, or a hit with the largest epsilon and the smallest q cannot be paid.

    Notes
    -----
    A hit of a call with epsilon ``e`` weighs ``e/q``. The weights of all hits add up to at most
    `mixed_charging_weight`, and a call is run only if its hit would not exceed this. A call without a hit is free.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithm 6, Remark B.6.

    Examples
    --------
    >>> interaction = MixedInteraction(epsilon=1.0, delta=1e-6, largest_epsilon=0.02)
    >>> for each in (0.02, 0.005, 0.001):
    ...     _ = interaction.run(lambda: "hit", hit=lambda _: True, epsilon=each, q=not_prior_q(each))
    >>> round(interaction.weight - interaction.weight_left, 4)  # about twice the sum of the epsilons
    0.0524
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        largest_epsilon: float,
        smallest_q: float | None = None,
        calls_delta: float = 0.0,
    ) -> None:
        super().__init__(delta, calls_delta, 1)
        least = not_prior_q(largest_epsilon) if smallest_q is None else smallest_q
        self._weight = mixed_charging_weight(
            epsilon=epsilon, delta=self._charging_delta, largest_epsilon=largest_epsilon, smallest_q=least
        )
        if self._weight < largest_epsilon / least:
            raise InputError(
                f"epsilon {epsilon} and delta {delta} cannot pay for one hit of weight {largest_epsilon / least:.4g}; "
                f"use a smaller largest_epsilon or a larger smallest_q"
            )
        self._largest_epsilon, self._smallest_q = largest_epsilon, least
        self._left, self._weighed = Fraction(self._weight), Fraction(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(weight={self._weight}, weight_left={self.weight_left})"

    @property
    def weight(self) -> float:
        """Largest sum that the weights of all hits may have."""
        return self._weight

    @property
    def weight_left(self) -> float:
        """Largest sum that the weights of further hits may have."""
        return float(self._left)

    def run(
        self,
        algorithm: Callable[[], Outcome],
        *,
        hit: Callable[[Outcome], bool],
        epsilon: float,
        q: float,
        delta: float = 0.0,
    ) -> Outcome:
        """Run your own private algorithm and release its outcome.

        If its target is not hit, it costs only its delta. You promise that the algorithm is (epsilon,
        delta)-differentially private and that the target has this q.

        Parameters
        ----------
        algorithm, hit, delta
            As for `TargetInteraction.run`, with one target.
        epsilon : float
            The algorithm's privacy parameter; above 0, at most the interaction's `largest_epsilon`.
        q : float
            Smallest probability of a hit; at most 1, at least the interaction's `smallest_q`.

        Raises
        ------
        BudgetError
            If a hit of this call, or its delta, could not be paid; nothing is run. A lighter call may still be
            possible.
        InputError
            If epsilon, q or delta is out of range; nothing is run and nothing is charged.

        Notes
        -----
        Exceptions of `algorithm` and `hit` are passed on and count as a hit, because an error is an outcome, too.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Algorithm 6, Remark B.6.
        """
        self._weighed = self._admitted(epsilon, q, delta)
        return self._run(algorithm, lambda outcome: [bool(hit(outcome))])

    def _charge(self, hits: Sequence[bool] | None) -> None:
        if hits is None or hits[0]:
            self._left -= self._weighed

    def _admitted(self, epsilon: float, q: float, delta: float) -> Fraction:
        """Return the weight of a call's hit, if the interaction can pay for it, and spend the call's delta."""
        if not 0 < epsilon <= self._largest_epsilon:
            raise InputError(
                f"a call's epsilon is above 0 and at most {self._largest_epsilon}; got {epsilon}; nothing was run"
            )
        if not self._smallest_q <= q <= 1:
            raise InputError(f"q lies in [{self._smallest_q}, 1] here; got {q}; nothing was run")
        self._check_idle()
        weight = Fraction(epsilon) / Fraction(q)
        if weight > self._left:
            raise BudgetError(
                f"a hit of this call costs {float(weight):.6g}; {self.weight_left:.6g} of {self._weight:.6g} is left; "
                f"nothing was run; a call of a smaller epsilon or a larger q may still be possible"
            )
        self._spend(delta)
        return weight
