"""Privacy-loss distributions: composition of releases of different kinds, computed on a grid and rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import optimize
from reusable_holdout.mechanisms.accounting.bisection import smallest_between, smallest_from_zero
from reusable_holdout.noise.composition import LARGEST_EXPONENT

Profile: TypeAlias = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

_INFLATION = 0.0005  # squared grid step over a loss's mean variance; the grid adds a quarter of it at most
_CELLS = 256  # points of the grid that a loss's variance is guessed on
_WIDTH = 24.0  # standard deviations of the composed loss that the grid spans
_MOST_POINTS = 2**22  # points of a grid
_FINEST = 1e-12  # least step of a grid; a smaller loss is 0 or infinite
_NOWHERE = 1e-24  # reach of a loss that is either 0 or infinite: less than the least step
_FARTHEST = 200.0  # losses beyond count as infinite
_ROUNDING = 4e-16  # relative, of one operation of a Fourier transform
_ROUND_UP = 1 + 1e-7  # pays for the rounding of the masses of one release
_RENYI_ROUND_UP = 1 + 1e-12  # pays for the rounding of a divergence, however small
_CLOSE = 1e-6  # relative, of an epsilon


@dataclass(frozen=True, slots=True)
class _Loss:
    """The distribution of a privacy loss: probabilities at multiples of a grid step, and that of an infinite loss."""

    first: int
    masses: npt.NDArray[np.float64]
    infinite: float
    count: int

    def log_moment(self, slope: float, step: float) -> float:
        """Return the log of the mean of ``exp(slope loss)``, without infinite losses."""
        exponents = slope * step * self.places()
        top = exponents.max()
        return float(top + math.log(self.masses @ np.exp(exponents - top)))

    def places(self) -> npt.NDArray[np.int64]:
        """Return the losses that the masses belong to, in grid steps."""
        return self.first + np.arange(len(self.masses))

    def tilted(self, slope: float, step: float) -> npt.NDArray[np.float64]:
        """Return the distribution of the finite losses, weighted by ``exp(slope loss)`` and normalised."""
        return np.asarray(self.masses * np.exp(slope * step * self.places() - self.log_moment(slope, step)))


def composed_delta(parts: Sequence[tuple[Profile, int]], epsilon: float, *, smallest: float = 1e-15) -> float:
    """Compute the delta of adaptive releases at an epsilon, from the profile of each.

    Parameters
    ----------
    parts : Sequence[tuple[Profile, int]]
        For each kind of release its privacy profile and its number of repetitions. A profile takes an array of epsilons
        of at least 0, and returns an array of bounds of delta.
    epsilon : float
        Epsilon of all releases together; at least 0.
    smallest : float
        Deltas below this do not matter: losses that are so unlikely may count as infinite.

    Returns
    -------
    float
        Delta of all releases together, rounded up.

    Notes
    -----
    A profile is convex in ``exp(epsilon)``. So straight lines between its values on a grid lie above it. They are the
    profile of a pair of distributions on the grid, which dominates the release. Such pairs compose by convolution of
    their losses, also for adaptively chosen releases. The convolution is computed as a product of Fourier transforms.
    The losses are first weighted by ``exp(slope loss)``, so that rounding does not lose the part that matters.
    Probability beyond the grid is added where it raises delta at least as much as at its true place.

    References
    ----------
    .. [1] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots: tighter discrete approximations
       of privacy loss distributions".
    .. [2] Zhu, Dong and Wang (2022), "Optimal accounting of differential privacy via characteristic function",
       Theorems 10 and 27, on domination and adaptive composition.
    """
    losses, step = _discretised(parts, smallest)
    if _infinite(losses) == 1:
        return 1.0
    return _delta(losses, step, epsilon)


def composed_epsilon(parts: Sequence[tuple[Profile, int]], delta: float) -> float:
    """Compute the epsilon of adaptive releases at a delta above 0; `composed_delta` at this epsilon is at most `delta`.

    It is infinite if the delta of the releases is larger at every epsilon.
    """
    losses, step = _discretised(parts, delta * 1e-3)
    if _infinite(losses) * _ROUND_UP > delta:
        return math.inf
    return smallest_from_zero(
        lambda epsilon: _delta(losses, step, epsilon) <= delta, start=16 * step, close=_CLOSE
    )


def _discretised(parts: Sequence[tuple[Profile, int]], smallest: float) -> tuple[list[_Loss], float]:
    """Return the distributions of all losses on one grid, which is so fine that its rounding hardly matters."""
    total = sum(count for _, count in parts)
    reaches = [_reach(profile, smallest / total) for profile, _ in parts]
    variance = 0.0
    for (profile, count), reach in zip(parts, reaches, strict=True):
        loss = _on_grid(profile, reach / _CELLS, _CELLS, count)
        points = loss.places() * reach / _CELLS
        variance += count * float(loss.masses @ points**2)
    step = max(math.sqrt(_INFLATION * variance / total), _FINEST)
    # The loss of the most frequent release falls on the grid: randomized response is then not rounded.
    most = max(range(len(parts)), key=lambda place: (min(reaches[place], _FINEST), parts[place][1]))
    step = reaches[most] / math.ceil(reaches[most] / step)
    step = max(step, max(reaches) * 4 / _MOST_POINTS, _FINEST)
    return [
        _on_grid(profile, step, max(1, math.ceil(reach / step - 1e-9)), count)
        for (profile, count), reach in zip(parts, reaches, strict=True)
    ], step


def _reach(profile: Profile, least: float) -> float:
    """Find the largest loss that matters: beyond it the profile is at most `least`, or no longer decreases."""

    def more(epsilon: float) -> bool:
        values = profile(np.array([epsilon, _FARTHEST]))
        return bool(values[0] > max(least, values[1] * (1 + 1e-9)))

    return smallest_between(lambda epsilon: not more(epsilon), _NOWHERE, _FARTHEST)


def _on_grid(profile: Profile, step: float, size: int, count: int) -> _Loss:
    """Return the loss on multiples of `step` whose profile joins the values of `profile` there by straight lines."""
    deltas = np.minimum(profile(np.arange(size + 1, dtype=np.float64) * step), 1.0)
    deltas = np.minimum.accumulate(deltas)
    falls = -np.diff(deltas)
    up = falls / -math.expm1(-step)
    up[:-1] -= falls[1:] / math.expm1(step)
    up = np.maximum(up, 0.0)
    down = up[::-1] * np.exp(-step * np.arange(size, 0, -1))
    infinite = float(deltas[-1])
    middle = max(0.0, 1 - infinite - float(up.sum() + down.sum()))
    return _Loss(-size, np.concatenate([down, [middle], up]), infinite, count)


def _infinite(losses: Sequence[_Loss]) -> float:
    """Return the probability that the sum of all losses is infinite."""
    return -math.expm1(
        sum(loss.count * math.log1p(-loss.infinite) if loss.infinite < 1 else -math.inf for loss in losses)
    )


def _delta(losses: Sequence[_Loss], step: float, epsilon: float) -> float:
    """Bound delta at `epsilon`: convolve losses on a grid of `step`, reweighted so that their sum is near it."""
    slope = _best_slope(losses, step, epsilon)
    log_moment = _log_moment(losses, step, slope)
    size, middle = _span(losses, step, slope), round(epsilon / step)
    tilted = _convolved(losses, step, slope, size)
    places = np.arange(math.floor(epsilon / step) + 1, middle + size // 2)
    beyond = places * step - epsilon
    weights = np.exp(-slope * beyond) * -np.expm1(-beyond)
    scale = math.exp(log_moment - slope * epsilon)
    rounding = _ROUNDING * (sum(loss.count for loss in losses) + 8 * math.log2(size))
    inside = scale * float(weights @ (np.maximum(tilted[places % size], 0.0) + rounding))
    top = (middle + size // 2) * step
    steeper = _best_slope(losses, step, top)
    above = math.exp(_log_moment(losses, step, steeper) - steeper * top)
    return min(1.0, (_infinite(losses) + inside + above) * _ROUND_UP)


def _log_moment(losses: Sequence[_Loss], step: float, slope: float) -> float:
    return sum(loss.count * loss.log_moment(slope, step) for loss in losses)


def _best_slope(losses: Sequence[_Loss], step: float, epsilon: float) -> float:
    """Find the slope of the best Chernoff bound; any slope of at least 0 is valid."""
    largest = 600.0 / max(-loss.first * step for loss in losses)
    found = optimize.minimize_scalar(
        lambda slope: _log_moment(losses, step, slope) - slope * epsilon,
        bounds=(0.0, largest),
        method="bounded",
        options={"maxiter": 40},
    )
    return float(found.x) if found.fun < LARGEST_EXPONENT else 0.0  # slope 0 is best far below the mean


def _span(losses: Sequence[_Loss], step: float, slope: float) -> int:
    """Return the number of grid points, a power of two, that hold nearly all of the weighted sum's distribution."""
    variance = 0.0
    for loss in losses:
        points, weights = loss.places() * step, loss.tilted(slope, step)
        variance += loss.count * float(weights @ (points - weights @ points) ** 2)
    needed = max(64.0, _WIDTH * math.sqrt(variance) / step, 2.0 * max(len(loss.masses) for loss in losses))
    return int(min(2 ** math.ceil(math.log2(needed)), _MOST_POINTS))


def _convolved(losses: Sequence[_Loss], step: float, slope: float, size: int) -> npt.NDArray[np.float64]:
    """Return the distribution of the weighted sum of all losses, in grid steps modulo `size`."""
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for loss in losses:
        wrapped = np.bincount(loss.places() % size, weights=loss.tilted(slope, step), minlength=size)
        product *= np.fft.rfft(wrapped) ** loss.count
    return np.fft.irfft(product, size)


def pure_renyi(epsilon: float, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the Renyi divergence of randomized response at each order, rounded up.

    No epsilon-differentially private release has a larger one. At order ``a`` it is ``ln(cosh((a - 1/2) e) /
    cosh(e/2)) / (a - 1)``, written so that no digits cancel where epsilon ``e`` is small.
    """
    if math.isinf(epsilon):
        return np.full(len(orders), math.inf)
    if epsilon == 0:
        return np.zeros(len(orders))
    logs = (orders - 1) * epsilon - math.log1p(math.exp(-epsilon))
    logs += np.log(-np.expm1(-orders * epsilon)) + np.log(-np.expm1(-(orders - 1) * epsilon))
    return np.minimum(np.logaddexp(0.0, logs) / (orders - 1) * _RENYI_ROUND_UP, epsilon)


def pure_profile(epsilon: float, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the delta of randomized response at each epsilon."""
    if math.isinf(epsilon):
        return np.ones(len(epsilons))
    return -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
