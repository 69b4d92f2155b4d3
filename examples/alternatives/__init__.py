"""Half-widths of other methods with the same rows, for comparison with a plan."""

from alternatives.gaussian_width import GaussianWidth, gaussian_width
from alternatives.hoeffding_widths import (
    hoeffding_splitting_half_width,
    naive_union_half_width,
    rounded_answers_half_width,
)
from alternatives.naive_reuse import majority_attack_gain
from alternatives.sample_splitting import sample_splitting_half_width
from alternatives.transfer import (
    TransferSlack,
    bassily_error,
    expected_error,
    transfer_error,
    transfer_failure,
    transfer_slack,
)
from reusable_holdout.certainty import fixed_queries_half_width

__all__ = [
    "GaussianWidth",
    "TransferSlack",
    "bassily_error",
    "expected_error",
    "fixed_queries_half_width",
    "gaussian_width",
    "hoeffding_splitting_half_width",
    "majority_attack_gain",
    "naive_union_half_width",
    "rounded_answers_half_width",
    "sample_splitting_half_width",
    "transfer_error",
    "transfer_failure",
    "transfer_slack",
]
