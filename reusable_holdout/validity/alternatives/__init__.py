"""What others would say with the same rows: the yardsticks a plan is printed beside, and what a release gate needs."""

from reusable_holdout.validity.alternatives.fixed_queries import (
    fixed_queries_half_width,
    sample_splitting_half_width,
)
from reusable_holdout.validity.alternatives.gaussian_width import (
    GaussianWidth,
    gaussian_delta,
    gaussian_width,
)
from reusable_holdout.validity.alternatives.hoeffding_widths import (
    hoeffding_splitting_half_width,
    naive_union_half_width,
    rounded_answers_half_width,
)
from reusable_holdout.validity.alternatives.naive_reuse import majority_attack_gain
from reusable_holdout.validity.alternatives.sample_sizes import (
    bennett_rows,
    difference_rows,
    gate_rows,
    histories,
    hoeffding_rows,
    interval_rows,
    paired_gate_rows,
)
from reusable_holdout.validity.alternatives.transfer import (
    TransferSlack,
    bassily_error,
    expected_error,
    transfer_error,
    transfer_failure,
    transfer_slack,
)

__all__ = [
    "GaussianWidth",
    "TransferSlack",
    "bassily_error",
    "bennett_rows",
    "difference_rows",
    "expected_error",
    "fixed_queries_half_width",
    "gate_rows",
    "gaussian_delta",
    "gaussian_width",
    "histories",
    "hoeffding_rows",
    "hoeffding_splitting_half_width",
    "interval_rows",
    "majority_attack_gain",
    "naive_union_half_width",
    "paired_gate_rows",
    "rounded_answers_half_width",
    "sample_splitting_half_width",
    "transfer_error",
    "transfer_failure",
    "transfer_slack",
]
