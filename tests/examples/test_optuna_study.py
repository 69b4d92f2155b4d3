"""The example of an Optuna study: an honest one is confirmed, a mistaken one corrected."""

import pytest
from examples.scripts import run

pytestmark = pytest.mark.long(
    "examples/optuna_study.py", "integrations/reusable_holdout_optuna", "reusable_holdout"
)


def test_the_guard_confirms_one_study_and_corrects_the_other(tmp_path):
    text = run("optuna_study.py", "--quick", "--output", "study.png", folder=tmp_path)
    honest, mistaken = text.split("copies, then folds:")
    assert "all 12 trials" in honest
    assert "True" not in honest  # charged
    last = [line for line in mistaken.splitlines() if " True " in line][-1].split()
    prior, answer, fresh = float(last[2]), float(last[3]), float(last[7])
    assert prior > answer + 0.03
    assert abs(answer - fresh) < abs(prior - fresh)
    assert (tmp_path / "study.png").stat().st_size > 10_000
