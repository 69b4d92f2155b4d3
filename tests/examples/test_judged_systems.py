"""The examples of judged systems and of a judge beside people: intervals hold, and are as narrow as they say."""

import pytest
from examples.scripts import run


def table(printed, columns):
    """Name and numbers of each line under the names of the columns."""
    header = next(place for place, line in enumerate(printed.splitlines()) if " runs" in line)
    lines = printed.splitlines()[header + 1 :]
    split = [line.rsplit(maxsplit=columns) for line in lines]
    return {name.strip(): [float(number) for number in numbers] for name, *numbers in split}


@pytest.mark.long("examples/judged_systems.py", "reusable_holdout/guard", "reusable_holdout/certainty")
def test_comparisons_and_a_small_benchmark_hold_and_are_as_narrow_as_the_goal(tmp_path):
    found = table(run("judged_systems.py", "--runs", "8", "--jobs", "1", folder=tmp_path), 6)
    assert len(found) == 6
    for name, (_, agreed, width, _, held, _) in found.items():
        assert held >= 0.6  # fewer have probability 4e-4, at five in a hundred
        if name.startswith("compare"):
            assert agreed >= 0.9
            assert width <= (0.11 if " 500 " in name else 0.05) * 1.1


@pytest.mark.long("examples/beside_a_judge.py", "reusable_holdout/guard", "reusable_holdout/certainty")
def test_a_judge_narrows_intervals_or_is_left_out(tmp_path):
    found = table(run("beside_a_judge.py", "--runs", "4", "--jobs", "1", folder=tmp_path), 8)
    assert list(found) == ["0.500", "0.650", "0.750", "0.850", "0.950"]
    ratios = [numbers[4] for numbers in found.values()]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] <= 1.02
    assert ratios[-1] <= 0.75
    assert sum(numbers[6] for numbers in found.values()) <= 3  # runs with a miss
