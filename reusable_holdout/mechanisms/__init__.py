"""The mechanisms of the literature: they know noise but no data.

Each class or function is one algorithm of one paper, in its real units. A guard runs on `cores/`, `calibration` and
the noise of `noise/` alone; `samplers/`, `sparse_vector/`, `selection/`, `targets/`, `answers` and `comparison` are for
those who run the algorithms themselves.
"""

from reusable_holdout.deferred import names_on_first_use

# a guard needs few of them
__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        "reusable_holdout.accounting.one_shot": ["one_shot_top_k_epsilon_each"],
        ".answers": ["gaussian_mechanism", "laplace_accuracy", "laplace_mechanism"],
        ".calibration": ["Calibration", "GuardMechanism", "optimal_ratio"],
        ".comparison": ["MechanismNoise", "compare_mechanisms", "tightest_stream"],
        ".cores.guard_core": ["GuardCore"],
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
