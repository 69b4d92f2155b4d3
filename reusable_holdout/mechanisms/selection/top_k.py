"""One-shot top-k: add noise to every score once and report the best few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.one_shot import one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.comparison import Selection, compare_selections
from reusable_holdout.mechanisms.selection.exponential import candidates_on_grid, selection_rate
from reusable_holdout.mechanisms.selection.noisy_max import Ranking, draw_noise
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace


@dataclass(frozen=True, slots=True)
class Request:
    """The public parameters of a one-shot selection."""

    epsilon: float
    delta: float
    count: int
    candidates: int


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """The candidates with the largest noisy scores, and these scores.

    Attributes
    ----------
    indices : ndarray of int64, shape (m,)
        Indices of the candidates, best first. In an interaction with target charging each costs a charge.
    scores : ndarray of float, shape (m,)
        Their noisy scores in the scores' unit, in decreasing order.
    found : tuple
        The results of the runs if the candidates are private algorithms; otherwise empty.
    request : Request or None
        The parameters, if Laplace noise was added to the scores in one shot.
    """

    indices: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    found: tuple[Any, ...] = ()
    request: Request | None = None

    @property
    def tightest(self) -> Selection | None:
        """Name of the selection with the least noise that releases equally many candidates and scores.

        Its guarantee is the same. It is the first row of `compare_selections` with answers; `select_then_measure` runs
        it. It depends only on the request, and not on scores. It is None if there is no request.
        """
        if self.request is None:
            return None
        return compare_selections(**asdict(self.request), answers=True)[0].selection


@dataclass(frozen=True, slots=True, eq=False)
class TopKGaps:
    """The candidates with the largest noisy scores, and how far each is ahead of the next.

    Attributes
    ----------
    indices : ndarray of int64, shape (k,)
        Indices of the candidates, best first.
    gaps : ndarray of float, shape (k,)
        Distance of each noisy score from the next smaller one, in the scores' unit; at least 0. The last gap is the
        distance to the best candidate that was not selected.
    """

    indices: npt.NDArray[np.int64]
    gaps: npt.NDArray[np.float64]


def one_shot_top_k(
    scores: npt.ArrayLike | Sequence[Any],
    k: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    stop_gap: float | None = None,
    stop: Callable[[TopK], bool] | None = None,
    algorithm: Callable[[Any, float], tuple[Any, float]] | None = None,
    seed: int | None = None,
) -> TopK:
    """Add Laplace noise to every score once and publish the k largest, or run private algorithms and publish the best.

    All published numbers are (epsilon, delta)-differentially private.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Scores of the candidates on the private data; larger is better. With `algorithm`: its inputs, one for each
        candidate.
    k : int
        Candidates to publish; at least 1, at most n.
    epsilon, delta : float
        Privacy parameters of the whole selection; delta in [0, 1). With delta 0 the noise grows with n, and
        `noisy_top_k_gaps` is better unless ``n <= 2k``. If k is small, or only the order is wanted, other selections
        have far less noise. For one of many at epsilon 1 and delta 1e-6 they need scales of 4 to select and 2 for the
        score, not 32.1. `compare_selections` lists them, `TopK.tightest` names the best; `select_then_measure` runs it.
    sensitivity : float
        Largest change of one score when one row is replaced, in the scores' unit. Ignored with `algorithm`.
    stop_gap : float, optional
        Publish only the candidates before the first gap of at least this size between consecutive noisy scores, in the
        scores' unit; above 0. Then at most `k` are published, and the noise is that of `k`.
    stop : Callable[[TopK], bool], optional
        Any other stopping rule. It takes the candidates published so far, best first, and returns True to stop there.
        It is called after each candidate, and may use nothing but its argument. The noise is again that of `k`.
    algorithm : Callable[[candidate, float], (found, score)], optional
        A private algorithm in place of Laplace noise. It takes a candidate and an epsilon ``e0``, runs on the private
        data with fresh randomness, and returns a result (such as a model) and a score, which together are
        ``e0``-differentially private. It is run once for each candidate. Exceptions are passed on, and the guarantee
        does not cover them.
    seed
        As for `exponential_mechanism`.

    Returns
    -------
    TopK
        Indices, noisy scores and results, best first: k of them, or fewer if a stopping rule applied.

    Raises
    ------
    InputError
        If a parameter is out of range, or a score is NaN or beyond 2**60 grid steps; the message tells no score.

    Notes
    -----
    The Laplace noise has scale ``D/e0``, with ``D`` the sensitivity and ``e0`` the result of
    `one_shot_top_k_epsilon_each`. Publishing the noisy scores costs nothing more. Scores that tie are ranked in a
    uniform random order that ignores the data.

    The proof lowers a threshold over the grid, from a height that no outcome reaches. At each step it asks for each
    candidate whether its outcome is above the threshold. It may stop by any rule that depends only on the outcomes that
    the threshold has passed: at the k-th hit, or when the threshold has fallen by the gap since the last hit.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Algorithm 3, Lemma 2.6, Theorem I.3; section 2.4.1 for gaps and other rules.

    Examples
    --------
    >>> best = one_shot_top_k([1.0, 9e3, 3.0, 6e3, 0.0], 4, epsilon=1.0, delta=1e-6, stop_gap=4e3, seed=0)
    >>> best.indices.tolist()
    [1, 3]
    >>> def fit(degree, epsilon):  # private in earnest: this one reads no data
    ...     return f"model of degree {degree}", -abs(degree - 2.0)
    >>> one_shot_top_k([1, 2, 3], 1, epsilon=1.0, delta=1e-6, algorithm=fit).found
    ('model of degree 2',)
    """
    if stop_gap is not None and not (math.isfinite(stop_gap) and stop_gap > 0):
        raise InputError(f"stop_gap is finite and above 0, or None; got {stop_gap}")
    words = RandomWords(seed)
    if algorithm is not None:
        candidates = cast("Sequence[Any]", scores)
        each = one_shot_top_k_epsilon_each(k=k, candidates=len(candidates), epsilon=epsilon, delta=delta)
        return _published(_ran(candidates, algorithm, each, words), k, stop_gap=stop_gap, stop=stop)
    grid, steps = candidates_on_grid(cast("npt.ArrayLike", scores), epsilon=epsilon, sensitivity=sensitivity)
    each = one_shot_top_k_epsilon_each(k=k, candidates=len(steps), epsilon=epsilon, delta=delta)
    law = DiscreteLaplace(grid.sensitivity / Fraction(each))
    ranking = Ranking(steps + draw_noise(law, len(steps), words), words)
    whole = TopK(ranking.order, _real(ranking.noisy, grid), request=Request(epsilon, delta, k, len(steps)))
    return _published(whole, k, stop_gap=stop_gap, stop=stop)


def _ran(
    candidates: Sequence[Any],
    algorithm: Callable[[Any, float], tuple[Any, float]],
    epsilon: float,
    words: RandomWords,
) -> TopK:
    """Run every candidate once, and rank all by their scores; NaN is the worst score.

    Each run is `epsilon`-differentially private if the algorithm is. Candidates that tie are ranked in a uniform random
    order that ignores the data. Only the best candidates may be published.
    """
    ran = [algorithm(candidate, epsilon) for candidate in candidates]
    scores = np.array([float(score) for _, score in ran])
    scores[np.isnan(scores)] = -np.inf
    shuffled = words.permutation(len(ran))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    return TopK(order, scores[order], tuple(ran[index][0] for index in order.tolist()))


def _published(whole: TopK, k: int, *, stop_gap: float | None, stop: Callable[[TopK], bool] | None) -> TopK:
    """Return the best k candidates of a ranking, or fewer if a stopping rule applies.

    It uses no candidate after the last published one, except for the gap between the two. It does not use the gap after
    the k-th candidate.
    """

    def best(count: int) -> TopK:
        return TopK(
            whole.indices[:count].copy(), whole.scores[:count].copy(), whole.found[:count], whole.request
        )

    for count in range(1, k):
        if stop is not None and stop(best(count)):
            return best(count)
        if stop_gap is not None and whole.scores[count - 1] - whole.scores[count] >= stop_gap:
            return best(count)
    return best(k)


def noisy_top_k_gaps(
    scores: npt.ArrayLike,
    k: int,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    seed: int | None = None,
) -> TopKGaps:
    """Add Laplace noise to every score once; publish the k largest candidates and the gaps between them.

    All published numbers are (epsilon, 0)-differentially private, however many candidates there are. Publishing the
    gaps costs nothing more.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, seed
        As for `exponential_mechanism`, with the same errors; the promise `monotonic` halves the noise.
    k : int
        Candidates to publish; at least 1, less than n.

    Returns
    -------
    TopKGaps
        Indices, best first, and the gaps.

    Notes
    -----
    With ``D`` the sensitivity and ``e`` epsilon, the noise has scale ``2kD/e``, or ``kD/e`` for monotonic scores. With
    ``k = 1`` this is `report_noisy_max` with its gap. Proof: fix the order of ties, and the noise of the candidates
    that are not published. Then an outcome belongs to exactly one vector of the published candidates' noise. The
    component of candidate ``i`` is ``t`` plus a constant of the outcome, minus its score ``q_i``, where ``t`` is the
    best noisy score of the others. Each component changes by at most ``2D`` between neighbours.

    A gap is the number of grid steps by which a candidate's noise could fall with the candidate still ahead. This is
    one step below the plain difference if the next candidate would win a tie. The plain difference is not private where
    it is 0. For example, with ties broken by index, take the four scores 0, 8, -8, -8, of which the last two fall by
    ``D = 1`` and the others rise. Then the privacy loss is 1.88 epsilon at epsilon = ln 4.

    References
    ----------
    .. [1] Ding, Wang, Zhang, Kifer (2019), "Free gap information from the differentially private sparse vector and
       noisy max mechanisms", Algorithm 1; its noise is continuous.

    Examples
    --------
    >>> best = noisy_top_k_gaps([1.0, 900.0, 3.0, 600.0], 2, epsilon=1.0, seed=0)
    >>> best.indices.tolist(), len(best.gaps)
    ([1, 3], 2)
    """
    grid, steps = candidates_on_grid(scores, epsilon=epsilon, sensitivity=sensitivity)
    if not 1 <= k < len(steps):
        raise InputError(f"k is at least 1 and less than the number of candidates, {len(steps)}; got {k}")
    rate = selection_rate(epsilon=epsilon, sensitivity=grid.sensitivity, monotonic=monotonic)
    words = RandomWords(seed)
    ranking = Ranking(steps + draw_noise(DiscreteLaplace(k / rate), len(steps), words), words)
    return TopKGaps(ranking.order[:k], _real(ranking.gaps[:k], grid))


def _real(steps: npt.NDArray[np.int64], grid: Grid) -> npt.NDArray[np.float64]:
    return np.asarray(steps * grid.step, dtype=np.float64)
