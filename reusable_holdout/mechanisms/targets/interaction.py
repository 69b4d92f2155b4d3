"""An interaction of private algorithms of any kind that stops after a number of target hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms.accounting.target_charging import target_charging_epsilon_each
from reusable_holdout.mechanisms.accounting.targets import differing_runs_q, not_prior_mean, not_prior_q
from reusable_holdout.mechanisms.targets.base import Interaction

Outcome = TypeVar("Outcome")


class TargetInteraction(Interaction):
    """An interaction of private algorithms, one after another, that pays only for outcomes in a target.

    All outcomes together are (epsilon, delta)-differentially private, however many algorithms are run and however
    adaptively they are chosen; after `charges` hits it refuses to go on.

    Parameters
    ----------
    charges : int
        Number of target hits before the interaction halts; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole interaction; epsilon finite and above 0, delta in (0, 1).
    targets : int
        Number ``k`` of targets of each call; the interaction halts when each was hit `charges` times.
    q : Callable[[float], float]
        Takes the epsilon of one call and returns the smallest probability of a hit. Calls with a smaller one are
        refused.
    mean : Callable[[float], float], optional
        Takes the epsilon of one call and returns the smallest mean of this probability over two neighbouring data sets.
        If it is known, the cost depends on it alone. Calls with a smaller mean are refused; a call that states no
        mean is taken to have its q as the mean.
    calls_delta : float
        Part of `delta` that is set aside for calls that are only approximately private: the largest sum of the deltas
        of all calls, hits or not. At least 0, less than ``delta / targets``.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    It draws no noise: `TargetCharging` adds calls that answer with noisy numbers.

    An (e, d)-private call is an e-private call except for a failure of probability d. So the deltas of the calls add
    up, and the rest of `delta` pays for target charging.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithms 1, 2, 6 and 8, Theorem B.4, Lemma 2.7.

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
        mean: Callable[[float], float] | None = None,
        calls_delta: float = 0.0,
    ) -> None:
        super().__init__(delta, calls_delta, targets)
        self._epsilon_each = target_charging_epsilon_each(
            epsilon=epsilon, delta=self._charging_delta, charges=charges, q=q, mean=mean, targets=targets
        )
        self._q = q(self._epsilon_each)
        self._mean = 0.0 if mean is None else mean(self._epsilon_each)
        self._charges = charges
        self._hits = [0] * targets
        self._kept: dict[str, tuple[object, float]] = {}  # name: outcome that was not released, its epsilon
        self._named: set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon_each={self._epsilon_each}, charges_left={self.charges_left})"

    @property
    def epsilon_each(self) -> float:
        """Largest privacy parameter of one call."""
        return self._epsilon_each

    @property
    def q(self) -> float:
        """Smallest probability of a hit that a call may have."""
        return self._q

    @property
    def hits(self) -> tuple[int, ...]:
        """Number of hits of each target so far."""
        return tuple(self._hits)

    @property
    def charges_left(self) -> int:
        """Number of hits that are left for the target with the fewest hits."""
        return self._charges - min(self._hits)

    @property
    def halted(self) -> bool:
        """True if the budget is spent; every further call then raises BudgetError."""
        return self.charges_left <= 0

    def twice(self, algorithm: Callable[[], Outcome], *, epsilon: float) -> tuple[Outcome, Outcome]:
        """Run a private algorithm twice and release both outcomes.

        It is free if they agree, and a hit if they differ.

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
        Exceptions of the algorithm are passed on and count as a hit.

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

    def release_if(
        self,
        algorithm: Callable[[], Outcome],
        condition: Callable[[Outcome], bool],
        *,
        epsilon: float,
        delta: float = 0.0,
        name: str | None = None,
    ) -> Outcome | None:
        """Run a private algorithm and release its outcome only if a condition holds.

        It is a hit if the outcome is released. Otherwise it costs only its delta.

        Parameters
        ----------
        algorithm : Callable[[], Outcome]
            Runs on the private data, with fresh randomness.
        condition : Callable[[Outcome], bool]
            Returns True to release an outcome. It may depend on the outcome and on earlier releases only.
        epsilon, delta : float
            The algorithm's privacy parameters; epsilon at most `epsilon_each`, or half of it with a name.
        name : str, optional
            A new name. If the outcome is not released, it is kept under this name for `revise_release`.

        Returns
        -------
        Outcome or None
            The outcome, or None if it is not released.

        Raises
        ------
        BudgetError
            As `run` does; nothing is run.
        InputError
            If a parameter is out of range or the name was used before; nothing is run and nothing is charged.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Lemma 2.4.

        Examples
        --------
        >>> interaction = TargetInteraction(charges=1, epsilon=1.0, delta=1e-6)
        >>> interaction.release_if(lambda: 0.4, lambda quality: quality > 0.9, epsilon=0.01, name="model")
        >>> interaction.charges_left, interaction.revise_release("model", lambda quality: quality > 0.3)
        (1, 0.4)
        """
        if name is not None:
            self._check_name(name, epsilon)

        def call() -> tuple[bool, Outcome | None]:
            outcome = algorithm()
            if condition(outcome):
                return True, outcome
            if name is not None:
                self._kept[name] = (outcome, epsilon)
            return False, None

        return self._run_not_prior(call, epsilon, delta)

    def revise_release(self, name: str, condition: Callable[[Any], bool]) -> Any:
        """Release an outcome that was kept, if it meets a new condition.

        It is a hit if the outcome is released, and otherwise free.

        Parameters
        ----------
        name : str
            The name given to `release_if`.
        condition : Callable[[Outcome], bool]
            Returns True to release the outcome. It may depend on the outcome and on earlier releases only.

        Returns
        -------
        Outcome or None
            The outcome, or None if it is still not released.

        Raises
        ------
        BudgetError
            As `run` does; nothing is released.
        InputError
            If nothing is kept under the name; nothing is released and nothing is charged.

        Notes
        -----
        Given that it has not been released, the outcome of an e-private algorithm is ``2e``-private. The algorithm's
        delta was spent when it was run.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Algorithm 2, Lemma 2.5.
        """
        if name not in self._kept:
            raise InputError(f"nothing is kept under the name {name!r}, or it has been released")
        _, epsilon = self._kept[name]

        def call() -> tuple[bool, object]:
            outcome, _ = self._kept.pop(name)
            if condition(outcome):
                return True, outcome
            self._kept[name] = (outcome, epsilon)
            return False, None

        return self._run_not_prior(call, 2 * epsilon)

    def run(
        self,
        algorithm: Callable[[], Outcome],
        *,
        hit: Callable[[Outcome], bool | Sequence[bool]],
        epsilon: float,
        q: float,
        mean: float | None = None,
        delta: float = 0.0,
    ) -> Outcome:
        """Run your own private algorithm and release its outcome.

        If no target is hit, it costs only its delta. You promise that the algorithm is (epsilon, delta)-differentially
        private and that the targets have this q and mean.

        Parameters
        ----------
        algorithm : Callable[[], Outcome]
            Runs on the private data, with fresh randomness.
        hit : Callable[[Outcome], bool or Sequence of bool]
            Returns True if an outcome lies in the target, or one truth value for each of several targets. It may depend
            on the outcome alone.
        epsilon : float
            The algorithm's privacy parameter; above 0, at most `epsilon_each`.
        q : float
            Smallest probability of a hit of each of its targets; at most 1, at least the interaction's `q`.
        mean : float, optional
            Smallest mean of this probability over two neighbouring data sets, if it is known to be larger than `q`.
        delta : float
            The algorithm's delta, 0 for a purely private algorithm. It is spent even if no target is hit.

        Raises
        ------
        BudgetError
            If the interaction has halted, or the deltas of its calls would add up to more than `calls_delta`; nothing
            is run.
        InputError
            If epsilon, q, mean or delta is out of range; nothing is run and nothing is charged.

        Notes
        -----
        A NotPrior target of an approximately private algorithm has the q and mean of a purely private one (Lemma C.1).
        Exceptions of `algorithm` and `hit` are passed on and hit every target, because an error is an outcome, too.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Definitions 2.1 and B.2, Algorithms 1 and 6.
        """
        if not 0 < epsilon <= self._epsilon_each:
            raise InputError(
                f"a call's epsilon is above 0 and at most {self._epsilon_each}; got {epsilon}; nothing was run"
            )
        chance = q if mean is None else mean
        if not 0 < q <= chance <= 1:
            raise InputError(f"q lies in (0, 1], mean between q and 1; got {q}, {mean}; nothing was run")
        self._admit(q, chance)
        self._spend(delta)
        return self._run(algorithm, lambda outcome: self._truths(hit(outcome)))

    def _truths(self, found: bool | Sequence[bool]) -> Sequence[bool]:
        """Return one truth value for each target: the given ones, or the same one for all targets."""
        if not isinstance(found, Sequence):
            return [bool(found)] * len(self._hits)
        if len(found) != len(self._hits):
            raise InputError(f"hit gives one bool for each of {len(self._hits)} targets; all were charged")
        return list(map(bool, found))

    def _run_not_prior(
        self, call: Callable[[], tuple[bool, Outcome]], epsilon: float, delta: float = 0.0
    ) -> Outcome:
        """Run a call that returns (released, outcome); it is a hit of a NotPrior target if `released` is True."""
        target = {"q": not_prior_q(epsilon), "mean": not_prior_mean(epsilon)}
        return self.run(call, hit=lambda pair: pair[0], epsilon=epsilon, delta=delta, **target)[1]

    def _check_name(self, name: str, epsilon: float) -> None:
        """Refuse a name that was used before, or an epsilon too large for a revision; otherwise take the name."""
        if name in self._named:
            raise InputError(f"each name is used once; got {name!r} again; revise it, or use another name")
        if not 2 * epsilon <= self._epsilon_each:
            raise InputError(
                f"with a name, epsilon is at most {self._epsilon_each / 2}, because a later revision costs twice "
                f"epsilon; got {epsilon}; nothing was run"
            )
        self._named.add(name)

    def _admit(self, q: float, mean: float) -> None:
        """Refuse a call that the interaction cannot pay for."""
        self._check_idle()
        if self.halted:
            raise BudgetError(f"all {self._charges} charges are spent; nothing was answered; no call is left")
        for name, least, told in (("q", self._q, q), ("mean", self._mean, mean)):
            if told < least:
                raise InputError(
                    f"a call must have a {name} of at least {least} here; got {told}; nothing was answered; make an "
                    f"interaction with a smaller {name} or gap"
                )

    def _charge(self, hits: Sequence[bool] | None) -> None:
        told = [True] * len(self._hits) if hits is None else hits
        self._hits = [count + hit for count, hit in zip(self._hits, told, strict=True)]
