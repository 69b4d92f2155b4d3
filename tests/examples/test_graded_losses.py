"""The examples of graded losses and of groups: what is printed is what the goals ask for."""

import pytest
from examples.scripts import run


@pytest.mark.long(
    "examples/graded_losses.py",
    "reusable_holdout/guard",
    "reusable_holdout/certainty",
    "reusable_holdout/plan",
)
def test_evidence_needs_far_less_tolerance_than_a_distance(tmp_path):
    printed = run("graded_losses.py", "--quick", folder=tmp_path).splitlines()
    tolerances = [line.rsplit(maxsplit=4)[1:] for line in printed[3:11]]
    assert [int(numbers[0]) for numbers in tolerances] == [500, 2_000] * 4
    for _, distance, evidence, _ in tolerances:
        assert float(evidence) < 0.65 * float(distance)
    widths = {
        tuple(line.split()[:2]): float(line.split()[3])
        for line in printed
        if line.split()[:1] in (["log_loss"], ["brier"])
    }
    assert widths["log_loss", "0"] <= 0.05
    assert widths["log_loss", "5"] <= 0.10
    assert widths["brier", "0"] <= 0.0175
    assert widths["brier", "5"] <= 0.031


@pytest.mark.long("examples/groups.py", "reusable_holdout/guard", "reusable_holdout/certainty")
def test_groups_hold_where_rows_taken_for_independent_do_not(tmp_path):
    printed = run("groups.py", "--runs", "12", "--jobs", "1", folder=tmp_path).splitlines()
    held = [float(line.split("12 ")[1].split()[0]) for line in printed if " 12 " in line]
    assert len(held) == 4
    for with_groups in held[1::2]:
        assert with_groups >= 0.7  # fewer have probability 1e-4, at five in a hundred
    assert held[2] < 0.9
