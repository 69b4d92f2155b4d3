"""What a number of private releases costs together: numbers in, numbers out, neither noise nor data."""

from reusable_holdout.accounting.composition import (
    advanced_composition,
    basic_composition,
    optimal_composition,
    optimal_epsilon_each,
)

__all__ = ["advanced_composition", "basic_composition", "optimal_composition", "optimal_epsilon_each"]
