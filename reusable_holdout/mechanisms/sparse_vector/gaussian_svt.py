"""GaussianSVT: the sparse vector technique with normal noise, for streams whose length is known beforehand."""

from __future__ import annotations

import math
from fractions import Fraction

from reusable_holdout.deferred import special
from reusable_holdout.mechanisms.accounting.gaussian_sparse_vector import gaussian_sparse_vector_deviations
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.samplers.rounded_normal import RoundedNormal
from reusable_holdout.mechanisms.sparse_vector.real_stream import WhetherStream, check_tail
from reusable_holdout.noise.sparse_vector import NoiseScales

__all__ = ["GaussianSVT"]


class GaussianSVT(WhetherStream):
    """Sparse vector technique with normal noise: which queries of a stream are above their thresholds.

    All answers together are (epsilon, delta)-differentially private; after `charges` queries above, or `queries` in
    all, it halts.

    Parameters
    ----------
    threshold : float
        The query's unit.
    queries : int
        Queries that it answers at most; at least 1. The noise grows with the root of its logarithm.
    charges : int
        Queries above the threshold before it halts; at least 1.
    epsilon, delta : float
        Privacy parameters of the whole stream; epsilon finite and above 0, delta in (0, 1).
    monotonic : bool
        Promise that replacing a row moves all queries in the same direction, or none. It nearly halves the queries'
        noise.
    sensitivity : float
        Largest change of one query when one row is replaced, in the query's unit.
    seed : int, optional
        For reproducible noise, which protects nobody. By default the noise is unpredictable.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Threshold noise ``N(0, s1^2)``, drawn once, query noise ``N(0, s2^2)``, with the deviations of
    `gaussian_sparse_vector_deviations`, rounded to the grid. Rounding is post-processing of the normal law: a query's
    chance to be above is exactly a value of the normal distribution function.

    Normal noise reaches less far than Laplace noise of its variance, which tells where many queries are asked; it needs
    a larger variance. `compare_mechanisms` says which of the two decides.

    References
    ----------
    .. [1] Zhu and Wang (2020), "Improving sparse vector technique with Renyi differential privacy", NeurIPS 33,
       Algorithm 2.

    Examples
    --------
    >>> stream = GaussianSVT(100.0, queries=1_000, epsilon=1.0, delta=1e-6, seed=1)
    >>> stream.ask(0.0), stream.ask(200.0, threshold=500.0), stream.ask(300.0), stream.halted
    (False, False, True, True)
    """

    def __init__(
        self,
        threshold: float,
        *,
        queries: int,
        charges: int = 1,
        epsilon: float,
        delta: float,
        monotonic: bool = False,
        sensitivity: float = 1.0,
        seed: int | None = None,
    ) -> None:
        grid = Grid.of(sensitivity)
        held, each = gaussian_sparse_vector_deviations(
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            charges=charges,
            sensitivity=float(grid.sensitivity),
            monotonic=monotonic,
        )
        super().__init__(
            threshold,
            grid=grid,
            scales=NoiseScales(Fraction(held), Fraction(each), Fraction(0)),
            charges=charges,
            seed=seed,
            threshold_noise="held",
            law=RoundedNormal,
            queries=queries,
        )

    def accuracy(self, *, queries: int, beta: float) -> float:
        """Distance from the threshold beyond which every answer is right.

        With probability ``1 - beta``, over `queries` queries of which at most `charges` reach the threshold less this
        distance: True is said only above ``threshold - alpha``, False only below ``threshold + alpha``.

        Parameters
        ----------
        queries : int
            Number ``k`` of queries asked; at least 1.
        beta : float
            Failure probability, in (0, 1).

        Raises
        ------
        InputError
            If a parameter is out of range.

        Notes
        -----
        The noise of one comparison is normal with variance ``s1^2 + s2^2``: its quantile at ``beta / k``, both sides
        counted, and three steps for the rounding of value, threshold and noises.
        """
        check_tail(queries=queries, beta=beta)
        deviation = math.hypot(float(self.scales.threshold), float(self.scales.query))
        quantile = -float(special.ndtri_exp(math.log(beta / 2) - math.log(queries)))
        return self._grid.real(math.ceil(deviation * quantile) + 3)
