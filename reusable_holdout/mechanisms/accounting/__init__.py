"""Privacy accounting: the joint privacy cost of several private releases, computed without noise or data."""

from reusable_holdout.mechanisms.accounting.accountant import PrivacyAccountant, PrivacyCost
from reusable_holdout.mechanisms.accounting.bounded_range import (
    bounded_range_composition,
    bounded_range_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.composition import (
    advanced_composition,
    basic_composition,
    optimal_composition,
    optimal_delta,
    optimal_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianEvent,
    PrivacyEvent,
    PureEvent,
    SubsampledEvent,
    TargetChargingEvent,
)
from reusable_holdout.mechanisms.accounting.filters import PrivacyFilter, PrivacyOdometer
from reusable_holdout.mechanisms.accounting.gaussian import gaussian_delta, gaussian_deviation
from reusable_holdout.mechanisms.accounting.mixed_charging import (
    mixed_charging_epsilon,
    mixed_charging_weight,
)
from reusable_holdout.mechanisms.accounting.one_shot import one_shot_top_k_epsilon_each
from reusable_holdout.mechanisms.accounting.repetitions import Repetitions
from reusable_holdout.mechanisms.accounting.subsampling import epsilon_of_the_sample, subsampled_epsilon
from reusable_holdout.mechanisms.accounting.target_charging import (
    TargetChargingBound,
    target_charging,
    target_charging_delta,
    target_charging_epsilon_each,
)
from reusable_holdout.mechanisms.accounting.targets import (
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    boundary_wrapped_epsilon,
    differing_runs_q,
    not_prior_mean,
    not_prior_q,
)

__all__ = [
    "ApproximateEvent",
    "BoundedRangeEvent",
    "ConcentratedEvent",
    "GaussianEvent",
    "PrivacyAccountant",
    "PrivacyCost",
    "PrivacyEvent",
    "PrivacyFilter",
    "PrivacyOdometer",
    "PureEvent",
    "Repetitions",
    "SubsampledEvent",
    "TargetChargingBound",
    "TargetChargingEvent",
    "advanced_composition",
    "basic_composition",
    "between_thresholds_q",
    "boundary_epsilon",
    "boundary_q",
    "boundary_wrapped_epsilon",
    "bounded_range_composition",
    "bounded_range_epsilon_each",
    "differing_runs_q",
    "epsilon_of_the_sample",
    "gaussian_delta",
    "gaussian_deviation",
    "mixed_charging_epsilon",
    "mixed_charging_weight",
    "not_prior_mean",
    "not_prior_q",
    "one_shot_top_k_epsilon_each",
    "optimal_composition",
    "optimal_delta",
    "optimal_epsilon_each",
    "subsampled_epsilon",
    "target_charging",
    "target_charging_delta",
    "target_charging_epsilon_each",
]
