"""Differentially private mechanisms from the literature, for people who run these algorithms themselves.

Each class or function is one algorithm of one paper, in real units. They add noise to numbers that the caller computed
from the data. A guard uses only :mod:`reusable_holdout.noise`, and none of these mechanisms.
"""

from reusable_holdout.mechanisms.answers import gaussian_mechanism, laplace_accuracy, laplace_mechanism
from reusable_holdout.mechanisms.comparison import MechanismNoise, compare_mechanisms, tightest_stream
from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
from reusable_holdout.mechanisms.samplers.random_words import RandomWords
from reusable_holdout.mechanisms.selection.accuracy import exponential_accuracy, noisy_max_accuracy
from reusable_holdout.mechanisms.selection.comparison import SelectionNoise, compare_selections
from reusable_holdout.mechanisms.selection.exponential import exponential_mechanism, exponential_top
from reusable_holdout.mechanisms.selection.noisy_max import report_noisy_max
from reusable_holdout.mechanisms.selection.permute_and_flip import permute_and_flip, permute_and_flip_top
from reusable_holdout.mechanisms.selection.private_selection import PrivateSelection, private_selection
from reusable_holdout.mechanisms.selection.synthetic import synthetic_accuracy, synthetic_data, synthetic_size
from reusable_holdout.mechanisms.selection.tightest import select_then_measure, select_top
from reusable_holdout.mechanisms.selection.top_k import TopK, TopKGaps, noisy_top_k_gaps, one_shot_top_k
from reusable_holdout.mechanisms.selection.unknown_domain import (
    UnknownDomainTop,
    unknown_domain_margin,
    unknown_domain_top,
)
from reusable_holdout.mechanisms.sketches import DistinctSketch
from reusable_holdout.mechanisms.sparse_vector.retraverse import retraversal
from reusable_holdout.mechanisms.sparse_vector.scales import (
    numeric_sparse_scales,
    sparse_scales,
    standard_svt_scales,
)
from reusable_holdout.mechanisms.sparse_vector.streams import (
    AboveThreshold,
    ConditionalStream,
    NumericSparse,
    Sparse,
    StandardSVT,
)
from reusable_holdout.mechanisms.targets.boundary import (
    boundary_wrapper,
    exponential_weights,
    exponential_weights_or_low,
)
from reusable_holdout.mechanisms.targets.charging import TargetCharging
from reusable_holdout.mechanisms.targets.individual import IndividualCharging
from reusable_holdout.mechanisms.targets.interaction import TargetInteraction
from reusable_holdout.mechanisms.targets.mixed import MixedInteraction

__all__ = [
    "AboveThreshold",
    "ConditionalStream",
    "DiscreteExponential",
    "DistinctSketch",
    "IndividualCharging",
    "MechanismNoise",
    "MixedInteraction",
    "NumericSparse",
    "PrivateSelection",
    "RandomWords",
    "SelectionNoise",
    "Sparse",
    "StandardSVT",
    "TargetCharging",
    "TargetInteraction",
    "TopK",
    "TopKGaps",
    "UnknownDomainTop",
    "boundary_wrapper",
    "compare_mechanisms",
    "compare_selections",
    "exponential_accuracy",
    "exponential_mechanism",
    "exponential_top",
    "exponential_weights",
    "exponential_weights_or_low",
    "gaussian_mechanism",
    "laplace_accuracy",
    "laplace_mechanism",
    "noisy_max_accuracy",
    "noisy_top_k_gaps",
    "numeric_sparse_scales",
    "one_shot_top_k",
    "permute_and_flip",
    "permute_and_flip_top",
    "private_selection",
    "report_noisy_max",
    "retraversal",
    "select_then_measure",
    "select_top",
    "sparse_scales",
    "standard_svt_scales",
    "synthetic_accuracy",
    "synthetic_data",
    "synthetic_size",
    "tightest_stream",
    "unknown_domain_margin",
    "unknown_domain_top",
]
