"""One budget for twenty slices and metrics, against a guard for each."""

import pytest
from examples.scripts import run


@pytest.mark.long("examples/one_budget.py", "reusable_holdout/guard", "reusable_holdout/certainty")
def test_one_budget_holds_where_twenty_guards_miss(tmp_path):
    printed = run("one_budget.py", "--runs", "12", "--guards", "2", "--jobs", "1", folder=tmp_path)
    rows = [line.rsplit(maxsplit=6) for line in printed.splitlines()[3:]]
    missed = {name: float(numbers[1]) for name, *numbers in rows}
    assert missed["a guard for each"] == 2
    assert missed["one budget: guard.on"] <= 3  # more have probability 1e-9, at five in a hundred
