"""The mechanisms of the literature: they know noise but no data.

Each class is one algorithm of one paper, in its real units; `SparseVector` is the integer core the guard runs
on.
"""

from reusable_holdout.mechanisms.above_threshold import AboveThreshold
from reusable_holdout.mechanisms.calibration import Calibration, GuardCore, GuardMechanism
from reusable_holdout.mechanisms.comparison import MechanismNoise, compare_mechanisms
from reusable_holdout.mechanisms.conditional_release import ConditionalRelease
from reusable_holdout.mechanisms.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.discrete_laplace import DiscreteLaplace
from reusable_holdout.mechanisms.noise import KeyedNoise, key_from_seed, new_key
from reusable_holdout.mechanisms.null_charges import expected_charges_of_stages, expected_null_charges
from reusable_holdout.mechanisms.numeric_sparse import NumericSparse, numeric_sparse_scales
from reusable_holdout.mechanisms.retraversal import retraversal
from reusable_holdout.mechanisms.sparse import Sparse, sparse_scales
from reusable_holdout.mechanisms.sparse_vector import NoiseScales, SparseVector
from reusable_holdout.mechanisms.standard_svt import StandardSVT, optimal_ratio, standard_svt_scales

__all__ = [
    "AboveThreshold",
    "Calibration",
    "ConditionalRelease",
    "DiscreteExponential",
    "DiscreteLaplace",
    "GuardCore",
    "GuardMechanism",
    "KeyedNoise",
    "MechanismNoise",
    "NoiseScales",
    "NumericSparse",
    "Sparse",
    "SparseVector",
    "StandardSVT",
    "compare_mechanisms",
    "expected_charges_of_stages",
    "expected_null_charges",
    "key_from_seed",
    "new_key",
    "numeric_sparse_scales",
    "optimal_ratio",
    "retraversal",
    "sparse_scales",
    "standard_svt_scales",
]
