"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.accounting.one_shot import one_shot_top_k_epsilon_each as one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.answers import gaussian_mechanism as gaussian_mechanism
from reusable_holdout.mechanisms.answers import laplace_accuracy as laplace_accuracy
from reusable_holdout.mechanisms.answers import laplace_mechanism as laplace_mechanism
from reusable_holdout.mechanisms.calibration import Calibration as Calibration
from reusable_holdout.mechanisms.calibration import GuardMechanism as GuardMechanism
from reusable_holdout.mechanisms.calibration import optimal_ratio as optimal_ratio
from reusable_holdout.mechanisms.comparison import MechanismNoise as MechanismNoise
from reusable_holdout.mechanisms.comparison import compare_mechanisms as compare_mechanisms
from reusable_holdout.mechanisms.comparison import tightest_stream as tightest_stream
from reusable_holdout.mechanisms.cores.conditional_release import ConditionalRelease as ConditionalRelease
from reusable_holdout.mechanisms.cores.guard_core import GuardCore as GuardCore
from reusable_holdout.mechanisms.cores.sparse_vector import NoiseScales as NoiseScales
from reusable_holdout.mechanisms.cores.sparse_vector import SparseVector as SparseVector
from reusable_holdout.mechanisms.noise.discrete_laplace import DiscreteLaplace as DiscreteLaplace
from reusable_holdout.mechanisms.noise.keyed import KeyedNoise as KeyedNoise
from reusable_holdout.mechanisms.noise.keyed import key_from_seed as key_from_seed
from reusable_holdout.mechanisms.noise.keyed import new_key as new_key
from reusable_holdout.mechanisms.null_charges import expected_charges_of_stages as expected_charges_of_stages
from reusable_holdout.mechanisms.null_charges import expected_null_charges as expected_null_charges
from reusable_holdout.mechanisms.samplers.discrete_exponential import (
    DiscreteExponential as DiscreteExponential,
)
from reusable_holdout.mechanisms.samplers.random_words import RandomWords as RandomWords
from reusable_holdout.mechanisms.samplers.rounded_normal import RoundedNormal as RoundedNormal
from reusable_holdout.mechanisms.selection.accuracy import exponential_accuracy as exponential_accuracy
from reusable_holdout.mechanisms.selection.accuracy import noisy_max_accuracy as noisy_max_accuracy
from reusable_holdout.mechanisms.selection.comparison import SelectionNoise as SelectionNoise
from reusable_holdout.mechanisms.selection.comparison import compare_selections as compare_selections
from reusable_holdout.mechanisms.selection.exponential import exponential_mechanism as exponential_mechanism
from reusable_holdout.mechanisms.selection.exponential import exponential_top as exponential_top
from reusable_holdout.mechanisms.selection.joint import joint_exponential_top as joint_exponential_top
from reusable_holdout.mechanisms.selection.noisy_max import NoisyMax as NoisyMax
from reusable_holdout.mechanisms.selection.noisy_max import permute_and_flip as permute_and_flip
from reusable_holdout.mechanisms.selection.noisy_max import report_noisy_max as report_noisy_max
from reusable_holdout.mechanisms.selection.noisy_max import report_noisy_max_gap as report_noisy_max_gap
from reusable_holdout.mechanisms.selection.private_selection import PrivateSelection as PrivateSelection
from reusable_holdout.mechanisms.selection.private_selection import private_selection as private_selection
from reusable_holdout.mechanisms.selection.rounds import permute_and_flip_top as permute_and_flip_top
from reusable_holdout.mechanisms.selection.synthetic import synthetic_accuracy as synthetic_accuracy
from reusable_holdout.mechanisms.selection.synthetic import synthetic_data as synthetic_data
from reusable_holdout.mechanisms.selection.synthetic import synthetic_size as synthetic_size
from reusable_holdout.mechanisms.selection.tightest import select_then_measure as select_then_measure
from reusable_holdout.mechanisms.selection.tightest import select_top as select_top
from reusable_holdout.mechanisms.selection.top_k import TopK as TopK
from reusable_holdout.mechanisms.selection.top_k import TopKGaps as TopKGaps
from reusable_holdout.mechanisms.selection.top_k import noisy_top_k_gaps as noisy_top_k_gaps
from reusable_holdout.mechanisms.selection.top_k import one_shot_top_k as one_shot_top_k
from reusable_holdout.mechanisms.selection.unknown_domain import UnknownDomainTop as UnknownDomainTop
from reusable_holdout.mechanisms.selection.unknown_domain import (
    unknown_domain_margin as unknown_domain_margin,
)
from reusable_holdout.mechanisms.selection.unknown_domain import unknown_domain_top as unknown_domain_top
from reusable_holdout.mechanisms.sketches import DistinctSketch as DistinctSketch
from reusable_holdout.mechanisms.sparse_vector.above_threshold import AboveThreshold as AboveThreshold
from reusable_holdout.mechanisms.sparse_vector.conditional_stream import (
    ConditionalStream as ConditionalStream,
)
from reusable_holdout.mechanisms.sparse_vector.gaussian_svt import GaussianSVT as GaussianSVT
from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import NumericSparse as NumericSparse
from reusable_holdout.mechanisms.sparse_vector.numeric_sparse import (
    numeric_sparse_scales as numeric_sparse_scales,
)
from reusable_holdout.mechanisms.sparse_vector.retraverse import retraversal as retraversal
from reusable_holdout.mechanisms.sparse_vector.sparse import Sparse as Sparse
from reusable_holdout.mechanisms.sparse_vector.sparse import sparse_scales as sparse_scales
from reusable_holdout.mechanisms.sparse_vector.standard_svt import StandardSVT as StandardSVT
from reusable_holdout.mechanisms.sparse_vector.standard_svt import standard_svt_scales as standard_svt_scales
from reusable_holdout.mechanisms.targets.boundary import TwoRuns as TwoRuns
from reusable_holdout.mechanisms.targets.boundary import boundary_wrapper as boundary_wrapper
from reusable_holdout.mechanisms.targets.boundary import (
    boundary_wrapper_black_box as boundary_wrapper_black_box,
)
from reusable_holdout.mechanisms.targets.boundary import exponential_weights as exponential_weights
from reusable_holdout.mechanisms.targets.boundary import (
    exponential_weights_or_low as exponential_weights_or_low,
)
from reusable_holdout.mechanisms.targets.charging import TargetCharging as TargetCharging
from reusable_holdout.mechanisms.targets.individual import IndividualCharging as IndividualCharging
from reusable_holdout.mechanisms.targets.interaction import TargetInteraction as TargetInteraction
from reusable_holdout.mechanisms.targets.mixed import MixedInteraction as MixedInteraction
