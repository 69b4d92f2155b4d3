"""Events of privacy accounting: each describes a private release, and computes its cost by the theories that apply."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bounded_range import bounded_range_composition
from reusable_holdout.mechanisms.accounting.charging_profile import charging_profile
from reusable_holdout.mechanisms.accounting.composition import optimal_composition
from reusable_holdout.mechanisms.accounting.gaussian import gaussian_delta
from reusable_holdout.mechanisms.accounting.losses import pure_profile, pure_renyi
from reusable_holdout.mechanisms.accounting.subsampling import subsampled_epsilon
from reusable_holdout.mechanisms.accounting.target_charging import check_charging

_MOST_CHARGES = 10**7  # with more charges, each of fifty points takes seconds
MOST_REPEATED = 10**15  # larger counts are not exact as floats


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name} is finite and above 0; got {value}")


def _check_count(name: str, value: int) -> None:
    if not (isinstance(value, int | np.integer) and 1 <= value <= MOST_REPEATED):
        raise InputError(f"{name} is a whole number between 1 and {MOST_REPEATED:,}; got {value}")


class PrivacyEvent:
    """One private release, or an interaction that counts as one.

    Each method gives the event's cost by one theory. It returns infinity or None if the theory does not apply, and an
    accountant uses the theories that apply to all events. Equal events count as the same event, repeated.
    """

    __slots__ = ()

    def failure(self) -> float:
        """Return the probability that the release costs more than the other methods say."""
        return 0.0

    def pure(self) -> float:
        """Return the epsilon that holds except with probability `failure`; it is infinite if there is none."""
        return math.inf

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bound the Renyi divergence between neighbours, in both directions, at each order above 1."""
        return pure_renyi(self.pure(), orders)

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Bound delta at each epsilon of at least 0, `failure` included; None if only the divergence is known."""
        known = pure_profile(self.pure(), epsilons)
        return self.failure() + (1 - self.failure()) * known

    def squared_shift(self) -> float | None:
        """Return the squared shift, in variances, of the shifted normal law with the same privacy profile, or None."""
        return None

    def repeated_epsilon(self, count: int, delta: float) -> tuple[float, str] | None:
        """Return the epsilon of `count` such events, and the theory's name, if a formula is known; else None."""
        return None


def has_profile(event: PrivacyEvent) -> bool:
    """Return True if the event's delta is known at one epsilon, which implies that it is known at all epsilons."""
    return event.delta(np.array([math.e])) is not None


@dataclass(frozen=True, slots=True)
class PureEvent(PrivacyEvent):
    """An (epsilon, 0)-differentially private release.

    Attributes
    ----------
    epsilon : float
        Finite, at least 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf:
            raise InputError(f"epsilon is finite and at least 0; got {self.epsilon}")

    def pure(self) -> float:  # noqa: D102 - as in PrivacyEvent
        return self.epsilon

    def repeated_epsilon(self, count: int, delta: float) -> tuple[float, str] | None:  # noqa: D102
        epsilon = optimal_composition(epsilon=self.epsilon, count=count, delta=delta)
        return min(epsilon * (1 + 1e-9), count * self.epsilon), "optimal composition"


@dataclass(frozen=True, slots=True)
class ApproximateEvent(PrivacyEvent):
    """An (epsilon, delta)-differentially private release.

    Attributes
    ----------
    epsilon : float
        Finite, at least 0.
    failing : float
        Its delta, in [0, 1).
    """

    epsilon: float
    failing: float

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf:
            raise InputError(f"epsilon is finite and at least 0; got {self.epsilon}")
        if not 0 <= self.failing < 1:
            raise InputError(f"a release's delta lies in [0, 1); got {self.failing}")

    def failure(self) -> float:  # noqa: D102
        return self.failing

    def pure(self) -> float:  # noqa: D102
        return self.epsilon


@dataclass(frozen=True, slots=True)
class ConcentratedEvent(PrivacyEvent):
    """A rho-zero-concentrated differentially private release (Bun and Steinke 2016).

    Attributes
    ----------
    rho : float
        Finite, above 0.
    """

    rho: float

    def __post_init__(self) -> None:
        _check_positive("rho", self.rho)

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:  # noqa: D102
        return self.rho * orders

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:  # noqa: D102
        return None


@dataclass(frozen=True, slots=True)
class BoundedRangeEvent(PrivacyEvent):
    """A release of bounded range, such as one draw of the exponential mechanism.

    Take for each outcome the log of the ratio of its probabilities on two neighbouring data sets. Between any two
    outcomes these log-ratios differ by at most epsilon. The Renyi divergence is at most ``order epsilon**2 / 8``
    (Cesar and Rogers 2021). With ``e`` for epsilon, the delta at ``E`` is at most ``(1 - exp((E - e)/2))**2 /
    (1 - exp(-e))`` (Dong, Durfee and Rogers 2020). Two outcomes with log-ratios ``t = (E + e)/2`` and ``t - e`` attain
    it.

    Attributes
    ----------
    epsilon : float
        The range; finite, above 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _check_positive("a range", self.epsilon)

    def pure(self) -> float:  # noqa: D102
        return self.epsilon

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:  # noqa: D102
        return np.minimum(orders * (self.epsilon * self.epsilon) / 8, pure_renyi(self.epsilon, orders))

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:  # noqa: D102
        inside = np.expm1(np.minimum((epsilons - self.epsilon) / 2, 0.0))
        return np.asarray(inside**2 / -math.expm1(-self.epsilon))

    def repeated_epsilon(self, count: int, delta: float) -> tuple[float, str] | None:  # noqa: D102
        return bounded_range_composition(epsilon=self.epsilon, count=count, delta=delta), "bounded range"


@dataclass(frozen=True, slots=True)
class GaussianEvent(PrivacyEvent):
    """Numbers released with normal noise.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the Euclidean sensitivity; finite, above 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_positive("a noise multiplier", self.noise_multiplier)

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:  # noqa: D102
        return orders / (2 * self.noise_multiplier**2)

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:  # noqa: D102
        return np.array(
            [gaussian_delta(epsilon=e, deviation=self.noise_multiplier) for e in epsilons.tolist()]
        )

    def squared_shift(self) -> float | None:  # noqa: D102
        return 1 / self.noise_multiplier**2


@dataclass(frozen=True, slots=True)
class TargetChargingEvent(PrivacyEvent):
    """An interaction with target charging, as in `target_charging`.

    Attributes
    ----------
    epsilon : float
        Privacy parameter of one call; finite, above 0.
    charges : int
        Number of target hits after which no further call is made; from 1 to 10**7.
    q : float
        Smallest probability of a hit, given that the call reads the data; in (0, 1].
    mean : float, optional
        Smallest mean of this probability over two neighbouring data sets, if one larger than `q` is known.
    """

    epsilon: float
    charges: int
    q: float
    mean: float | None = None

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        _check_count("charges", self.charges)
        if self.charges > _MOST_CHARGES:
            raise InputError(
                f"an event has at most {_MOST_CHARGES:,} charges, because its whole privacy curve is computed; "
                f"got {self.charges}; target_charging computes the cost of more"
            )
        check_charging(epsilon=self.epsilon, charges=self.charges, q=self.q, mean=self.mean)

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:  # noqa: D102
        farthest, reach = float(epsilons.max()), 1
        while reach * self.epsilon < farthest:
            reach += reach
        return charging_profile(self.epsilon, self.charges, self.q, self.mean, reach).at(epsilons)


@dataclass(frozen=True, slots=True)
class SubsampledEvent(PrivacyEvent):
    """A release from a secret random sample of the rows, as in `subsampled_epsilon`.

    Attributes
    ----------
    event : PrivacyEvent
        The release, with its privacy cost for the sample. It must have a privacy profile, as all but concentrated
        events have.
    rate : float
        Probability that a row is in the sample, in (0, 1].
    """

    event: PrivacyEvent
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"a rate lies in (0, 1]; got {self.rate}")
        if not has_profile(self.event):
            raise InputError(f"only an event with a privacy profile can be subsampled; got {self.event}")

    def failure(self) -> float:  # noqa: D102
        return self.rate * self.event.failure()

    def pure(self) -> float:  # noqa: D102
        inside = self.event.pure()
        return math.inf if math.isinf(inside) else subsampled_epsilon(inside, rate=self.rate)

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:  # noqa: D102
        # ln(1 + (exp(E) - 1)/p), without overflow; Balle, Barthe and Gaboardi (2018), Theorems 8 and 9
        inside = epsilons + np.log((-np.expm1(-epsilons) + self.rate * np.exp(-epsilons)) / self.rate)
        known = self.event.delta(np.maximum(inside, 0.0))
        return None if known is None else self.rate * known
