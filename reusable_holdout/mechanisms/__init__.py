"""The mechanisms of the literature: they know noise but no data.

Each class or function is one algorithm of one paper, in its real units. A guard runs on `cores/`, `calibration` and
the noise of `noise/` alone; `samplers/`, `sparse_vector/`, `selection/`, `targets/`, `answers` and `comparison` are for
those who run the algorithms themselves.
"""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.accounting.one_shot import one_shot_top_k_epsilon_each
    from reusable_holdout.mechanisms.answers import gaussian_mechanism, laplace_accuracy, laplace_mechanism
    from reusable_holdout.mechanisms.calibration import Calibration, GuardCore, GuardMechanism, optimal_ratio
    from reusable_holdout.mechanisms.comparison import MechanismNoise, compare_mechanisms, tightest_stream
    from reusable_holdout.mechanisms.cores.conditional_release import ConditionalRelease
    from reusable_holdout.mechanisms.cores.sparse_vector import NoiseScales, SparseVector
    from reusable_holdout.mechanisms.noise.discrete_laplace import DiscreteLaplace
    from reusable_holdout.mechanisms.noise.keyed import KeyedNoise, key_from_seed, new_key
    from reusable_holdout.mechanisms.null_charges import expected_charges_of_stages, expected_null_charges
    from reusable_holdout.mechanisms.samplers.discrete_exponential import DiscreteExponential
    from reusable_holdout.mechanisms.samplers.random_words import RandomWords
    from reusable_holdout.mechanisms.samplers.rounded_normal import RoundedNormal
    from reusable_holdout.mechanisms.selection.accuracy import exponential_accuracy, noisy_max_accuracy
    from reusable_holdout.mechanisms.selection.comparison import SelectionNoise, compare_selections
    from reusable_holdout.mechanisms.selection.exponential import exponential_mechanism, exponential_top
    from reusable_holdout.mechanisms.selection.joint import joint_exponential_top
    from reusable_holdout.mechanisms.selection.noisy_max import (
        NoisyMax,
        permute_and_flip,
        report_noisy_max,
        report_noisy_max_gap,
    )
    from reusable_holdout.mechanisms.selection.private_selection import PrivateSelection, private_selection
    from reusable_holdout.mechanisms.selection.rounds import permute_and_flip_top
    from reusable_holdout.mechanisms.selection.synthetic import (
        synthetic_accuracy,
        synthetic_data,
        synthetic_size,
    )
    from reusable_holdout.mechanisms.selection.tightest import select_then_measure, select_top
    from reusable_holdout.mechanisms.selection.top_k import TopK, TopKGaps, noisy_top_k_gaps, one_shot_top_k
    from reusable_holdout.mechanisms.selection.unknown_domain import (
        UnknownDomainTop,
        unknown_domain_margin,
        unknown_domain_top,
    )
    from reusable_holdout.mechanisms.sketches import DistinctSketch
    from reusable_holdout.mechanisms.sparse_vector.above_threshold import AboveThreshold
    from reusable_holdout.mechanisms.sparse_vector.conditional_stream import ConditionalStream
    from reusable_holdout.mechanisms.sparse_vector.gaussian_svt import GaussianSVT
    from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import NumericSparse, numeric_sparse_scales
    from reusable_holdout.mechanisms.sparse_vector.retraverse import retraversal
    from reusable_holdout.mechanisms.sparse_vector.sparse import Sparse, sparse_scales
    from reusable_holdout.mechanisms.sparse_vector.standard_svt import StandardSVT, standard_svt_scales
    from reusable_holdout.mechanisms.targets.boundary import (
        TwoRuns,
        boundary_wrapper,
        boundary_wrapper_black_box,
        exponential_weights,
        exponential_weights_or_low,
    )
    from reusable_holdout.mechanisms.targets.charging import TargetCharging
    from reusable_holdout.mechanisms.targets.individual import IndividualCharging
    from reusable_holdout.mechanisms.targets.interaction import TargetInteraction
    from reusable_holdout.mechanisms.targets.mixed import MixedInteraction
else:  # a guard needs few of them
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            "reusable_holdout.accounting.one_shot": ["one_shot_top_k_epsilon_each"],
            ".answers": ["gaussian_mechanism", "laplace_accuracy", "laplace_mechanism"],
            ".calibration": ["Calibration", "GuardCore", "GuardMechanism", "optimal_ratio"],
            ".comparison": ["MechanismNoise", "compare_mechanisms", "tightest_stream"],
            ".cores.sparse_vector": ["NoiseScales", "SparseVector"],
            ".noise.discrete_laplace": ["DiscreteLaplace"],
            ".noise.keyed": ["KeyedNoise", "key_from_seed", "new_key"],
            ".null_charges": ["expected_charges_of_stages", "expected_null_charges"],
            ".samplers.discrete_exponential": ["DiscreteExponential"],
            ".samplers.random_words": ["RandomWords"],
            ".samplers.rounded_normal": ["RoundedNormal"],
            ".selection.accuracy": ["exponential_accuracy", "noisy_max_accuracy"],
            ".selection.comparison": ["SelectionNoise", "compare_selections"],
            ".selection.exponential": ["exponential_mechanism", "exponential_top"],
            ".selection.joint": ["joint_exponential_top"],
            ".selection.noisy_max": [
                "NoisyMax",
                "permute_and_flip",
                "report_noisy_max",
                "report_noisy_max_gap",
            ],
            ".selection.private_selection": ["PrivateSelection", "private_selection"],
            ".selection.rounds": ["permute_and_flip_top"],
            ".selection.synthetic": ["synthetic_accuracy", "synthetic_data", "synthetic_size"],
            ".selection.tightest": ["select_then_measure", "select_top"],
            ".selection.top_k": ["TopK", "TopKGaps", "noisy_top_k_gaps", "one_shot_top_k"],
            ".selection.unknown_domain": [
                "UnknownDomainTop",
                "unknown_domain_margin",
                "unknown_domain_top",
            ],
            ".sketches": ["DistinctSketch"],
            ".sparse_vector.above_threshold": ["AboveThreshold"],
            ".sparse_vector.conditional_stream": ["ConditionalStream"],
            ".sparse_vector.gaussian_svt": ["GaussianSVT"],
            ".sparse_vector.numeric_sparse": ["NumericSparse", "numeric_sparse_scales"],
            ".sparse_vector.retraverse": ["retraversal"],
            ".sparse_vector.sparse": ["Sparse", "sparse_scales"],
            ".sparse_vector.standard_svt": ["StandardSVT", "standard_svt_scales"],
            ".targets.boundary": [
                "TwoRuns",
                "boundary_wrapper",
                "boundary_wrapper_black_box",
                "exponential_weights",
                "exponential_weights_or_low",
            ],
            ".targets.charging": ["TargetCharging"],
            ".targets.individual": ["IndividualCharging"],
            ".targets.interaction": ["TargetInteraction"],
            ".targets.mixed": ["MixedInteraction"],
            ".cores.conditional_release": ["ConditionalRelease"],
        },
    )

__all__ = [
    "AboveThreshold",
    "Calibration",
    "ConditionalRelease",
    "ConditionalStream",
    "DiscreteExponential",
    "DiscreteLaplace",
    "DistinctSketch",
    "GaussianSVT",
    "GuardCore",
    "GuardMechanism",
    "IndividualCharging",
    "KeyedNoise",
    "MechanismNoise",
    "MixedInteraction",
    "NoiseScales",
    "NoisyMax",
    "NumericSparse",
    "PrivateSelection",
    "RandomWords",
    "RoundedNormal",
    "SelectionNoise",
    "Sparse",
    "SparseVector",
    "StandardSVT",
    "TargetCharging",
    "TargetInteraction",
    "TopK",
    "TopKGaps",
    "TwoRuns",
    "UnknownDomainTop",
    "boundary_wrapper",
    "boundary_wrapper_black_box",
    "compare_mechanisms",
    "compare_selections",
    "expected_charges_of_stages",
    "expected_null_charges",
    "exponential_accuracy",
    "exponential_mechanism",
    "exponential_top",
    "exponential_weights",
    "exponential_weights_or_low",
    "gaussian_mechanism",
    "joint_exponential_top",
    "key_from_seed",
    "laplace_accuracy",
    "laplace_mechanism",
    "new_key",
    "noisy_max_accuracy",
    "noisy_top_k_gaps",
    "numeric_sparse_scales",
    "one_shot_top_k",
    "one_shot_top_k_epsilon_each",
    "optimal_ratio",
    "permute_and_flip",
    "permute_and_flip_top",
    "private_selection",
    "report_noisy_max",
    "report_noisy_max_gap",
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
