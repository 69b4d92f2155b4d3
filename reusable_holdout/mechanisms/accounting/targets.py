"""Targets for target charging: the smallest probability of a hit, given that a call reads the data.

A call hits a target if its outcome lies in a set that was named beforehand. An algorithm has a q-target if it behaves
as a mixture: with some probability it does not read the data, and otherwise it hits the target with probability at
least q.
"""

from __future__ import annotations

import math

from reusable_holdout.errors import InputError

_ROUND_DOWN = 1 - 2.0**-49  # pays for a few floating-point operations; a smaller q claims less


def _check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is finite and above 0; got {epsilon}")


def not_prior_q(epsilon: float) -> float:
    """Return the smallest probability q of a hit for a NotPrior target: all outcomes but one named beforehand.

    Every epsilon-differentially private algorithm has this q, and randomized response has no larger one. A conditional
    release has it too, with "not released" as the named outcome.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of one call; finite, above 0. For a revised conditional release it is twice the parameter of
        the algorithm whose outcome is stored.

    Returns
    -------
    float
        The probability q, rounded down.

    Raises
    ------
    InputError
        If epsilon is out of range.

    Notes
    -----
    It is ``1 / (exp(e) + 1)``, with ``e`` epsilon.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive
       computations", Lemmas 2.3, 2.4 and 2.5.

    Examples
    --------
    >>> round(not_prior_q(0.1), 4)
    0.475
    """
    _check_epsilon(epsilon)
    return math.exp(-epsilon) / (1 + math.exp(-epsilon)) * _ROUND_DOWN


def not_prior_mean(epsilon: float) -> float:
    """Return the smallest mean, over two neighbouring data sets, of the probability of a hit for a NotPrior target.

    The probability is that of a call that reads the data. The mean of every epsilon-differentially private
    algorithm is at least as large, and that of randomized response is equal. A conditional release is one of them.

    Parameters
    ----------
    epsilon
        As for `not_prior_q`, with the same error.

    Notes
    -----
    Let the named outcome have probabilities ``p > r`` on the two data sets. Of these the part ``c = (exp(e) r -
    p)/(exp(e) - 1)`` is common to both: there the call does not read the data. The rest is e-indistinguishable. In the
    rest the mean probability of another outcome is ``(2 - p - r)/(2 (1 - c))``. It is at least 1/2 exactly if
    ``exp(e) (1 - p) >= 1 - r``, and this holds because the algorithm is e-private.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma C.2, for the decomposition.

    Examples
    --------
    >>> not_prior_mean(0.1)
    0.5
    """
    _check_epsilon(epsilon)
    return 0.5


def between_thresholds_q(epsilon: float, width: float) -> float:
    """Return the smallest probability q of a hit if a noisy value hits the target when it lies between two thresholds.

    The noise is Laplace noise of scale sensitivity/epsilon. No larger q is true for it.

    Parameters
    ----------
    epsilon
        As for `not_prior_q`, with the same errors; the result is rounded down, too.
    width : float
        Distance of the thresholds divided by the sensitivity; above 0. For discrete Laplace noise it is the number of
        grid points that count as between, divided by the sensitivity in grid steps.

    Notes
    -----
    With ``w`` the width and ``e`` epsilon it is ``(1 - exp(-w e)) / (exp(e) + 1)``. "Not below" is a NotPrior target.
    If the noisy value is not below, it lies between with probability at least ``1 - exp(-w e)``, because Laplace noise
    has exponential tails.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma G.1.

    Examples
    --------
    >>> round(between_thresholds_q(0.1, 10.0), 4)
    0.3003
    """
    if not width > 0:
        raise InputError(f"the distance between the thresholds is above 0; got {width}")
    return not_prior_q(epsilon) * -math.expm1(-width * epsilon) * _ROUND_DOWN


def boundary_epsilon(epsilon: float) -> float:
    """Return the privacy parameter of a boundary wrapper around an algorithm.

    `boundary_wrapper` around an epsilon-differentially private algorithm is (result, 0)-differentially private. For
    some algorithms with three outcomes no smaller number is true.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of the algorithm inside; finite, above 0.

    Returns
    -------
    float
        Privacy parameter of the wrapper, rounded up.

    Raises
    ------
    InputError
        If epsilon is out of range.

    Notes
    -----
    With ``e`` epsilon it is ``t = e + ln(3 / (2 + exp(-e)))``, which is below the ``4e/3`` of the source. The wrapper
    divides an outcome's probability by ``1 + pi`` with ``pi = min(1/2, 1 - largest probability)``. Between neighbours
    the log of the probability changes by at most ``e``, and ``1 + pi`` changes at most from ``3/2`` to ``1 +
    exp(-e)/2``.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma 2.8.

    Examples
    --------
    >>> round(boundary_epsilon(0.1), 4)
    0.1322
    """
    _check_epsilon(epsilon)
    return (epsilon - math.log1p(math.expm1(-epsilon) / 3)) / _ROUND_DOWN


def boundary_wrapped_epsilon(epsilon: float) -> float:
    """Return the largest privacy parameter of an algorithm such that its boundary wrapper is epsilon-private.

    The boundary wrapper of an algorithm with the result as its privacy parameter is epsilon-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of the wrapper; finite, above 0.

    Returns
    -------
    float
        Privacy parameter of the algorithm, rounded down: its `boundary_epsilon` is at most `epsilon`.

    Notes
    -----
    ``x = exp(result)`` solves ``3 x^2 - 2 y x - y = 0`` with ``y = exp(epsilon)``.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma 2.8.

    Examples
    --------
    >>> round(boundary_wrapped_epsilon(boundary_epsilon(0.1)), 9)
    0.1
    """
    _check_epsilon(epsilon)
    # With s = exp(-epsilon): x = y (1 + sqrt(1 + 3s)) / 3, written so that a small epsilon cancels nothing.
    root = math.sqrt(1 + 3 * math.exp(-epsilon))
    inside = epsilon + math.log1p(math.expm1(-epsilon) / (root + 2))
    while boundary_epsilon(inside) > epsilon:  # never for the smallest number, which is its own
        smaller = math.nextafter(inside, 0.0)  # the smallest numbers must get smaller too
        inside = min(inside * _ROUND_DOWN, smaller)
    return inside


def boundary_q(epsilon: float, wrapped: float | None = None) -> float:
    """Return the smallest probability q of a hit if the target is the outcome "boundary" of a boundary wrapper.

    It holds for the boundary wrapper of every epsilon-differentially private algorithm.

    Parameters
    ----------
    epsilon
        As for `boundary_epsilon`, with the same errors. The result, q, is rounded down.
    wrapped : float, optional
        Privacy parameter ``t`` that the accountant uses for a call of the wrapper; at least `boundary_epsilon` of
        `epsilon`, which is the default.

    Notes
    -----
    It is ``(exp(t) - 1) / (2 (exp(e + t) - 1))``, with ``e`` epsilon: about 2/7 for small epsilon.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma 2.9.

    Examples
    --------
    >>> round(boundary_q(0.1), 4)
    0.2704
    """
    own = boundary_epsilon(epsilon)
    call = own if wrapped is None else wrapped
    if not (math.isfinite(call) and call >= own):
        raise InputError(
            f"for an algorithm of epsilon {epsilon}, wrapped is finite and at least {own}; got {wrapped}"
        )
    return math.expm1(-call) / (2 * math.expm1(-epsilon - call)) * math.exp(-epsilon) * _ROUND_DOWN


def differing_runs_q(epsilon: float) -> float:
    """Return the smallest probability q of a hit if an algorithm runs twice and the target is "the outcomes differ".

    It holds for every epsilon-differentially private algorithm with countably many outcomes. A call with both runs is
    (2 epsilon, 0)-differentially private.

    Parameters
    ----------
    epsilon
        Privacy parameter of one run. It is checked, and the result is rounded down, as in `not_prior_q`.

    Notes
    -----
    It is ``(1 + exp(e)) / (1 + exp(e) + 2 exp(2e))``, with ``e`` epsilon.

    References
    ----------
    .. [1] Cohen and Lyu (2023), Lemma F.1.

    Examples
    --------
    >>> round(differing_runs_q(0.1), 4)
    0.4629
    """
    _check_epsilon(epsilon)
    small = math.exp(-epsilon)
    share = small * (1 + small)
    return share / (share + 2) * _ROUND_DOWN
