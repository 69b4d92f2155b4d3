"""An interaction of private algorithms of any kind that stops after so many target hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from reusable_holdout.accounting.target_charging import Composition, target_charging_epsilon_each
from reusable_holdout.accounting.targets import differing_runs_q, not_prior_q
from reusable_holdout.errors import BudgetError, HandleError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TargetInteraction"]

Outcome = TypeVar("Outcome")


class TargetInteraction:
    """An interaction of private algorithms, chosen one after another, that pays only for outcomes in a target.

    All outcomes together are (epsilon, delta)-differentially private, however many algorithms are run and however
    adaptively they are chosen; after `charges` hits it refuses to go on.

    Parameters
    ----------
    charges : int
        Target hits before it halts; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole interaction; epsilon finite and above 0, delta in (0, 1).
    targets : int
        Number ``k`` of targets of each call; it halts when the least hit of them has been hit `charges` times.
    q : Callable[[float], float]
        Least chance of a hit of any call, given one call's epsilon. Calls with a smaller one are refused.
    composition : {"basic", "optimal"}
        How the calls that read the data compose.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It draws nothing itself: `TargetCharging` adds calls that answer with noisy numbers.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithms 1 and 8, Theorem B.4, Lemma 2.7.

    Examples
    --------
    >>> interaction = TargetInteraction(charges=1, epsilon=1.0, delta=1e-6)
    >>> each = interaction.epsilon_each
    >>> interaction.run(lambda: "no", hit=lambda answer: answer != "no", epsilon=each, q=not_prior_q(each))
    'no'
    >>> interaction.charges_left
    1
    """

    def __init__(
        self,
        *,
        charges: int,
        epsilon: float,
        delta: float,
        targets: int = 1,
        q: Callable[[float], float] = not_prior_q,
        composition: Composition = "optimal",
    ) -> None:
        self._epsilon_each = target_charging_epsilon_each(
            epsilon=epsilon, delta=delta, charges=charges, q=q, targets=targets, composition=composition
        )
        self._q = q(self._epsilon_each)
        self._charges = charges
        self._hits = [0] * targets
        self._running = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon_each={self._epsilon_each}, charges_left={self.charges_left})"

    def __reduce__(self) -> NoReturn:
        raise HandleError("an interaction cannot be pickled or copied: a copy would carry its own budget")

    @property
    def epsilon_each(self) -> float:
        """Largest privacy parameter of one call."""
        return self._epsilon_each

    @property
    def q(self) -> float:
        """Least chance of a hit that a call may have."""
        return self._q

    @property
    def hits(self) -> tuple[int, ...]:
        """Hits of each target so far."""
        return tuple(self._hits)

    @property
    def charges_left(self) -> int:
        """Hits of the least hit target that are left."""
        return self._charges - min(self._hits)

    @property
    def halted(self) -> bool:
        """Whether the budget is spent: then every further call raises BudgetError."""
        return self.charges_left <= 0

    def twice(self, algorithm: Callable[[], Outcome], *, epsilon: float) -> tuple[Outcome, Outcome]:
        """Run a private algorithm twice and release both outcomes.

        Free when they agree, a hit when they differ.

        Parameters
        ----------
        algorithm : Callable[[], Outcome]
            Runs on the private data, with fresh randomness each time; its outcomes can be compared.
        epsilon : float
            Its privacy parameter; at most half of `epsilon_each`.

        Raises
        ------
        BudgetError
            If the interaction has halted; nothing is run.
        InputError
            If epsilon is out of range; nothing is run and nothing is charged.

        Notes
        -----
        What the algorithm raises is passed on, and is a hit.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Lemma F.1.

        Examples
        --------
        >>> interaction = TargetInteraction(charges=1, epsilon=1.0, delta=1e-6)
        >>> interaction.twice(lambda: "constant", epsilon=0.01), interaction.halted
        (('constant', 'constant'), False)
        """
        q = differing_runs_q(epsilon)
        both = lambda: (algorithm(), algorithm())  # noqa: E731 - the pair is one outcome
        return self.run(both, hit=lambda pair: pair[0] != pair[1], epsilon=2 * epsilon, q=q)

    def run(
        self,
        algorithm: Callable[[], Outcome],
        *,
        hit: Callable[[Outcome], bool | Sequence[bool]],
        epsilon: float,
        q: float,
    ) -> Outcome:
        """Run a private algorithm of one's own and release its outcome.

        Free when no target is hit. That the algorithm is epsilon-differentially private, and that the targets have
        this q, is the caller's promise.

        Parameters
        ----------
        algorithm : Callable[[], Outcome]
            Runs on the private data, with fresh randomness.
        hit : Callable[[Outcome], bool or Sequence of bool]
            Whether an outcome lies in the target, or in each of several; a function of the outcome alone.
        epsilon : float
            The algorithm's privacy parameter; above 0, at most `epsilon_each`.
        q : float
            Least chance of a hit of each of its targets; at most 1, at least the interaction's `q`.

        Raises
        ------
        BudgetError
            If the interaction has halted; nothing is run.
        InputError
            If epsilon or q is out of range; nothing is run and nothing is charged.

        Notes
        -----
        What `algorithm` or `hit` raises is passed on, and hits every target: an error is an outcome too.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Definition 2.1, Algorithm 1.
        """
        if not 0 < epsilon <= self._epsilon_each:
            raise InputError(
                f"a call is at most {self._epsilon_each}-private; got {epsilon}; nothing was run"
            )
        if not 0 < q <= 1:
            raise InputError(f"q lies in (0, 1]; got {q}; nothing was run")
        self._admit(q)
        hits = [True] * len(self._hits)
        self._running = True
        try:
            outcome = algorithm()
            found = hit(outcome)
            told = list(map(bool, found)) if isinstance(found, Sequence) else [bool(found)] * len(hits)
            if len(told) != len(hits):
                raise InputError(f"hit gives one truth for each of {len(hits)} targets; all were charged")
            hits = told
            return outcome
        finally:
            self._running = False
            self._charge(hits)

    def _admit(self, q: float) -> None:
        """Refuse a call that the interaction cannot pay for."""
        if self._running:
            raise BudgetError("one call at a time; another one is running; nothing was answered")
        if self.halted:
            raise BudgetError(f"all {self._charges} charges are spent; nothing was answered; no call can be")
        if q < self._q:
            raise InputError(
                f"a call's target has a q of at least {self._q} here; got {q}; nothing was answered; make an "
                f"interaction with a smaller q or gap"
            )

    def _charge(self, hits: Sequence[bool]) -> None:
        self._hits = [count + hit for count, hit in zip(self._hits, hits, strict=True)]
