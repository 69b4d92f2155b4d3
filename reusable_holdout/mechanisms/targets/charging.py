"""Target charging: an interaction of noisy answers and private algorithms that pays only for hits of a target."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.targets import between_thresholds_q, not_prior_mean, not_prior_q
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.targets.interaction import TargetInteraction
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace
from reusable_holdout.noise.keyed import KeyedNoise, key_from_seed, new_key

Side = Literal["below", "between", "above"]


class TargetCharging(TargetInteraction):
    """An interaction of private calls that pays only for outcomes that hit a target.

    All its outcomes together are (epsilon, delta)-differentially private, however many calls are made and however
    adaptively they are chosen; after `charges` hits it refuses to go on.

    Parameters
    ----------
    charges, epsilon, delta, q
        As for `TargetInteraction`, with the same errors.
    sensitivity : float
        Largest change of one query between neighbouring data sets, in the query's unit.
    targets : int
        Number ``k`` of targets of each call. The interaction halts when every target has been hit `charges` times, so
        you need not know beforehand which outcome will be rare. Delta is divided by ``k``.
    mean : Callable[[float], float], optional
        Takes the epsilon of one call and returns the smallest mean of the probability of a hit over two neighbouring
        data sets. With `not_prior_mean` the noise is the least possible. Then `between` and `twice` are refused,
        because their targets do not have that mean.
    gap : float, optional
        Least distance between the two thresholds of `between`, in the query's unit; it lowers `q`. Without it `between`
        needs thresholds that are very far apart.
    seed : int, optional
        Seed for reproducible noise, which protects nobody. By default the noise is unpredictable.

    Notes
    -----
    One call is ``e``-differentially private with ``e`` from `target_charging_epsilon_each`: noise ``Lap(1/e)`` times
    the sensitivity, discrete, added to the value on the grid. The threshold has no noise, so the number that was
    compared is released itself. A named `conditional_release` has noise ``Lap(2/e)``, so that its revisions are
    ``e``-differentially private.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Algorithms 1, 2 and 8, Theorem B.4, Lemma 2.7.

    Examples
    --------
    >>> interaction = TargetCharging(charges=2, epsilon=1.0, delta=1e-6, seed=1)
    >>> interaction.not_prior(0.0, 0.0, tolerance=1000.0)
    0.0
    >>> abs(interaction.not_prior(9000.0, 0.0, tolerance=1000.0) - 9000.0) < 1000.0, interaction.charges_left
    (True, 1)
    """

    def __init__(
        self,
        *,
        charges: int,
        epsilon: float,
        delta: float,
        sensitivity: float = 1.0,
        targets: int = 1,
        q: Callable[[float], float] = not_prior_q,
        mean: Callable[[float], float] | None = None,
        gap: float | None = None,
        seed: int | None = None,
    ) -> None:
        self._grid = Grid.of(sensitivity)
        narrowest = math.inf if gap is None else self._width(gap)

        def least_q(each: float) -> float:
            return min(q(each), between_thresholds_q(each, narrowest))

        super().__init__(charges=charges, epsilon=epsilon, delta=delta, targets=targets, q=least_q, mean=mean)
        scale = self._grid.sensitivity / Fraction(self._epsilon_each)
        self._law, self._revisable = DiscreteLaplace(scale), DiscreteLaplace(2 * scale)
        self._noise = KeyedNoise(new_key() if seed is None else key_from_seed(seed))
        self._numbers = itertools.count()  # of draws
        self._stored: dict[str, tuple[int, float, float]] = {}  # name: noisy value, region
        self._names: set[str] = set()

    @property
    def step(self) -> float:
        """Width of one grid step in real units, a power of two."""
        return self._grid.step

    def not_prior(self, value: float, *priors: float, tolerance: float = 0.0) -> float:
        """Answer with the prior if the noisy value is near it, and otherwise with the noisy value.

        The call is free if the answer is the prior, and otherwise a hit.

        Parameters
        ----------
        value : float
            The query's value on the private data.
        *priors : float
            The expected values, one per target; finite. The answer is the first prior that the noisy value is near. It
            hits the targets of all priors that differ from it.
        tolerance : float
            Largest distance at which the noisy value, a multiple of `step`, agrees with a prior; at least 0. With 0
            nearly every call is a hit.

        Returns
        -------
        float
            The prior if the noisy value is within `tolerance` of it, otherwise the noisy value.

        Raises
        ------
        BudgetError
            If the interaction has halted; nothing is answered.
        InputError
            If an argument is out of range; nothing is answered and nothing is charged.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Lemma 2.3.
        """
        steps = self._steps(value)
        if len(priors) != len(self._hits) or not all(map(math.isfinite, priors)):
            raise InputError(f"give one finite prior for each of {len(self._hits)} targets; got {priors}")
        if not (math.isfinite(tolerance) and tolerance >= 0):
            raise InputError(f"a tolerance is finite and at least 0; got {tolerance}")
        self._admit_not_prior()
        noisy = steps + self._draw(self._law)
        exact = noisy * Fraction(self._grid.step)
        agreed = (prior for prior in priors if abs(exact - Fraction(prior)) <= Fraction(tolerance))
        answer = next(agreed, self._grid.real(noisy))
        self._charge([answer != prior for prior in priors])
        return answer

    def above(self, value: float, threshold: float, *priors: bool) -> bool:
        """Return True if the noisy value is at least a threshold.

        The call is free if the answer is the prior, and otherwise a hit.

        Parameters
        ----------
        value
            As for `not_prior`, with the same errors.
        threshold : float
            Threshold in the query's unit; finite.
        *priors : bool
            The expected answers, one per target; by default False for a single target.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Lemma 2.3, private testing.

        Examples
        --------
        >>> interaction = TargetCharging(charges=1, epsilon=1.0, delta=1e-6, seed=1)
        >>> interaction.above(-9000.0, 0.0), interaction.above(9000.0, 0.0), interaction.halted
        (False, True, True)
        """
        steps = self._steps(value)
        named = priors or (False,)
        if len(named) != len(self._hits):
            raise InputError(f"give one prior answer for each of {len(self._hits)} targets; got {len(named)}")
        if not math.isfinite(threshold):
            raise InputError(f"a threshold is a finite number; got {threshold}")
        least, _ = self._region(threshold, math.inf)
        self._admit_not_prior()
        answer = steps + self._draw(self._law) >= least
        self._charge([answer != bool(prior) for prior in named])
        return answer

    def between(self, value: float, low: float, high: float) -> Side:
        """Return whether the noisy value is below, between or above two thresholds.

        The answers "below" and "above" are free. "between", which includes both thresholds, is a hit.

        Parameters
        ----------
        value
            As for `not_prior`, with the same errors.
        low, high : float
            The thresholds, in the query's unit, at least `gap` apart; nearer ones are refused.

        Returns
        -------
        {"below", "between", "above"}

        References
        ----------
        .. [1] Cohen and Lyu (2023), Lemma G.1.

        Examples
        --------
        >>> interaction = TargetCharging(charges=1, epsilon=1.0, delta=1e-6, gap=10.0, seed=1)
        >>> interaction.between(-9000.0, 0.0, 10.0), interaction.between(9000.0, 0.0, 10.0)
        ('below', 'above')
        """
        steps = self._steps(value)
        least, most = self._region(low, high)
        points = most - least + 1
        q = between_thresholds_q(self._epsilon_each, points / self._grid.sensitivity)
        self._admit(q, q)
        noisy = steps + self._draw(self._law)
        side: Side = "below" if noisy < least else "above" if noisy > most else "between"
        self._charge([side == "between"] * len(self._hits))
        return side

    def conditional_release(
        self, value: float, *, low: float = -math.inf, high: float = math.inf, name: str | None = None
    ) -> float | None:
        """Release the noisy value if it lies in a region.

        The call is a hit if the value is released, and otherwise free.

        Parameters
        ----------
        value
            As for `not_prior`, with the same errors.
        low, high : float
            Ends of the region, both included, in the query's unit.
        name : str, optional
            A new name under which the noisy value is kept for `revise`, with twice the noise.

        Returns
        -------
        float or None
            The noisy value, or None if it lies outside the region.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Algorithm 2, Lemma 2.4.
        """
        steps = self._steps(value)
        region = self._region(low, high)
        if name in self._names:
            raise InputError(f"each name is used once; got {name!r} again; use revise, or another name")
        self._admit_not_prior()
        noisy = steps + self._draw(self._law if name is None else self._revisable)
        if name is not None:
            self._names.add(name)
            self._stored[name] = (noisy, *region)
        return self._release(noisy, region, name)

    def revise(self, name: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """Release a value that `conditional_release` kept, if it lies in a new, wider region.

        The call is a hit if the value is released, and otherwise free.

        Parameters
        ----------
        name : str
            The name given to `conditional_release`.
        low, high : float
            Ends of the new region, both included; it contains the old one.

        Returns
        -------
        float or None
            The noisy value, or None if it lies outside the new region, too.

        Raises
        ------
        BudgetError
            If the interaction has halted; nothing is answered.
        InputError
            If nothing is kept under the name or the region does not contain the old one; nothing is answered and
            nothing is charged.

        Notes
        -----
        Given that it has not been released, a value with noise ``Lap(2/e)`` is ``e``-differentially private.

        References
        ----------
        .. [1] Cohen and Lyu (2023), Algorithm 2, Lemma 2.5.

        Examples
        --------
        >>> interaction = TargetCharging(charges=1, epsilon=1.0, delta=1e-6, seed=1)
        >>> interaction.conditional_release(0.0, low=9000.0, name="first") is None
        True
        >>> interaction.revise("first", low=-9000.0) is None, interaction.halted
        (False, True)
        """
        if name not in self._stored:
            raise InputError(f"nothing is kept under the name {name!r}, or it has been released")
        noisy, least, most = self._stored[name]
        region = self._region(low, high)
        if region[0] > least or region[1] < most:
            raise InputError(f"a revised region must contain the region before it; got {low} to {high}")
        self._admit_not_prior()
        self._stored[name] = (noisy, *region)
        return self._release(noisy, region, name)

    def _admit_not_prior(self) -> None:
        self._admit(not_prior_q(self._epsilon_each), not_prior_mean(self._epsilon_each))

    def _steps(self, value: float) -> int:
        """Round a private value to the grid; a refusal does not contain the value."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                "a query's value is a finite number; nothing was answered and nothing was charged"
            )
        return self._grid.steps(number)

    def _region(self, low: float, high: float) -> tuple[float, float]:
        """Return the first and the last grid point of an interval, which are exact: a step is a power of two."""
        if not low <= high:
            raise InputError(f"a region's low end is at most its high end; got {low} to {high}")
        first, last = low / self._grid.step, high / self._grid.step
        ends = (
            math.ceil(first) if math.isfinite(first) else first,
            math.floor(last) if math.isfinite(last) else last,
        )
        if not ends[0] <= ends[1] or math.inf in ends[:1] or -math.inf in ends[1:]:
            raise InputError(f"a region holds a multiple of the step {self._grid.step}; got {low} to {high}")
        return ends

    def _width(self, gap: float) -> float:
        """Return the smallest number of grid points between thresholds `gap` apart, divided by the sensitivity."""
        if not 0 < gap < math.inf:
            raise InputError(f"a gap is finite and above 0; got {gap}")
        # One point may be lost to the thresholds' own rounding, when one is computed from the other.
        return max(1, math.floor(gap / self._grid.step) - 1) / self._grid.sensitivity

    def _draw(self, law: DiscreteLaplace) -> int:
        question = next(self._numbers).to_bytes(8, "big")
        return self._noise.draw(law, label="value" if law is self._law else "revisable", question=question)

    def _release(self, noisy: int, region: tuple[float, float], name: str | None) -> float | None:
        hit = region[0] <= noisy <= region[1]
        self._charge([hit] * len(self._hits))
        if hit and name is not None:
            del self._stored[name]
        return self._grid.real(noisy) if hit else None
