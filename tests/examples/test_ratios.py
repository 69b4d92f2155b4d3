"""The example of ratios: what it prints is what the goals ask for."""

import pytest
from examples.scripts import run

GOALS = {
    "f1": (0.066, 0.12),
    "precision": (0.08, 0.14),
    "balanced_accuracy": (0.038, 0.07),
    "average_precision": (0.20, 0.35),
}


@pytest.mark.long(
    "examples/ratios.py", "reusable_holdout/guard", "reusable_holdout/certainty", "reusable_holdout/plan"
)
def test_reveals_of_ratios_are_narrow(tmp_path):
    printed = [line.split() for line in run("ratios.py", "--quick", folder=tmp_path).splitlines()]
    for place, words in enumerate(printed):
        if words and words[0] in GOALS and len(words) == 6:
            assert float(words[3]) <= GOALS[words[0]][0]
            assert float(printed[place + 1][2]) <= GOALS[words[0]][1]
    tolerances = {words[0]: float(words[2]) for words in printed if words[1:2] == ["tolerance"]}
    assert tolerances["balanced_accuracy:"] <= 0.04
    assert tolerances["roc_auc:"] <= 0.06
