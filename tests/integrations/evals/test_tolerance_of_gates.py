"""The tolerance of a gate: that of differences, kept beside the ledger, down to the last charge."""

from pathlib import Path

import numpy as np
import pytest
from cases import refuses
from reusable_holdout_evals.gate import ask_gate, make_gate, open_gate

from reusable_holdout.errors import InputError, LedgerMismatchError

ROWS = 2_000
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)
ROUNDED = 0.15 + 1e-12  # a tolerance, for the ends of an interval are rounded


def predicted(accuracy, variant=0):
    """Predictions of exactly this accuracy."""
    wrong = np.roll(np.arange(ROWS) >= round(accuracy * ROWS), variant)
    return np.where(wrong, 1 - LABELS, LABELS)


def test_verdicts_are_certified_to_within_the_tolerance_of_the_named_improvement(write):
    """The tolerance is that of differences, down to the last charge."""
    found = []
    write("labels.csv", label=LABELS)
    write("old.csv", prediction=predicted(0.7))
    with make_gate("gate.db", Path("labels.csv"), queries=20, charges=5, tolerance=0.15, seed=0) as made:
        for k in range(20):
            write("new.csv", prediction=predicted(0.6 if k % 3 == 2 else 0.8, k))
            found.append(ask_gate(made, Path("new.csv"), Path("old.csv"), improvement=0.0))
    assert {one.verdict for one in found} == {"accepted", "rejected", "halted"}
    asked = [one for one in found if one.verdict != "halted"]
    assert asked[-1].charges_left == 0
    for one in asked:
        assert -ROUNDED <= one.low < 0 if one.verdict == "accepted" else 0 < one.high <= ROUNDED


def test_a_gate_asks_with_its_own_tolerance_wherever_it_is_opened(write):
    """That of differences is narrower than the plan's; with another one each question would be another question."""
    write("targets.csv", y=np.ones(ROWS))
    for name, error in (("old", 2.4), ("new", 1.2)):
        write(f"{name}.csv", y=1 + np.full(ROWS, error))
    plan = {"metric": "mae", "bounds": (1, 5), "queries": 20, "charges": 2, "seed": 0}
    made = make_gate("gate.db", Path("targets.csv"), spread=1.2, **plan)
    files, own = (Path("new.csv"), Path("old.csv")), made.tolerance
    assert made.plan.tolerance == own < 0.8 * made.guard.plan.tolerance
    found = ask_gate(made, *files, improvement=own)
    made.guard.close()
    assert (found.verdict, found.tolerance, found.low) == ("accepted", own, pytest.approx(0.0, abs=1e-9))

    def again():
        with open_gate("gate.db", labels=Path("targets.csv")) as opened:
            assert opened.tolerance == pytest.approx(own, rel=1e-12)
            return ask_gate(opened, *files, improvement=own)

    assert again() == found._replace(charged=False)
    kept = Path("gate.db.gate")
    kept.unlink()  # of a ledger that was copied alone
    assert again()._replace(tolerance=own) == found._replace(charged=False)
    kept.write_text("[]")
    refuses(InputError, "must hold a gate's tolerance", again)
    make_gate("gate.db", Path("targets.csv"), spread=1.2, **plan).guard.close()
    assert again() == found._replace(charged=False)
    with pytest.raises(LedgerMismatchError, match="a budget cannot be changed"):
        make_gate("gate.db", Path("targets.csv"), spread=2, **plan)
    assert again().charged is False
