"""The example of rows that were trained on: fresh ones are seldom refused, and those that were are found."""

import pytest
from examples.scripts import run


@pytest.mark.long(
    "examples/overlaps.py", "reusable_holdout/guard/row_sets.py", "reusable_holdout/guard/row_sets.py"
)
def test_fresh_rows_pass_and_planted_ones_are_found(tmp_path):
    printed = run("overlaps.py", "--quick", folder=tmp_path).splitlines()
    tables = [line.split() for line in printed[1:13] if "columns" not in line]
    assert len(tables) == 10
    for name, _, _, agree, refused, one, *_ in tables:
        if name in {"adult", "iris"}:
            assert float(refused) <= 0.3  # 6 of 20, by a rule of one in a hundred: 4e-8
        else:
            assert (float(agree), float(refused), float(one)) == (0.0, 0.0, 1.0)
    assert sum("to number" in line for line in printed) == 2
