"""What a gate accepts is certified to be better by what was named, down to the last charge."""

import functools
from pathlib import Path

import numpy as np
import pytest
from made_guards import right_in
from reusable_holdout_evals.gate import ask_gate, make_gate, open_gate

from reusable_holdout.errors import LedgerMismatchError

ROWS = 2_000
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)
predicted = functools.partial(right_in, LABELS)


def test_what_is_accepted_is_certified_to_reach_the_named_improvement_wherever_the_gate_is_opened(write):
    write("labels.csv", label=LABELS)
    write("old.csv", prediction=predicted(0.7))
    plan, found = {"queries": 20, "charges": 5, "spread": 0.4, "seed": 0}, []
    make_gate("gate.db", Path("labels.csv"), **plan).guard.close()
    for k in range(20):
        write("new.csv", prediction=predicted(0.71 if k % 3 == 2 else 0.85, k))
        with open_gate("gate.db") as opened:
            found.append(ask_gate(opened, Path("new.csv"), Path("old.csv"), improvement=0.02))
    assert {one.verdict for one in found} == {"accepted", "rejected", "halted"}
    for one in found:
        bounds = {"accepted": (pytest.approx(0.02), 1.0), "rejected": (-1.0, 1.0), "halted": (None, None)}
        assert (one.low, one.high) == bounds[one.verdict]
        assert (one.tolerance, one.note) == (0.0, "")
    with pytest.raises(LedgerMismatchError, match="a budget cannot be changed"):
        make_gate("gate.db", Path("labels.csv"), **plan | {"spread": 0.3})
