"""Exactly sampled noise that a secret key determines, and the sparse vector mechanism on which a guard runs."""

from reusable_holdout.noise.calibration import Calibration, GuardMechanism, optimal_ratio
from reusable_holdout.noise.discrete_laplace import DiscreteLaplace
from reusable_holdout.noise.keyed import KeyedNoise, key_from_seed, new_key
from reusable_holdout.noise.sparse_vector import NoiseScales, SparseVector

__all__ = [
    "Calibration",
    "DiscreteLaplace",
    "GuardMechanism",
    "KeyedNoise",
    "NoiseScales",
    "SparseVector",
    "key_from_seed",
    "new_key",
    "optimal_ratio",
]
